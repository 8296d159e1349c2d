"""Log lines: what they look like, and what they never show."""

import io
import json
import logging
import re
import time
from collections.abc import Iterator

import pytest

from headrace.broker.telemetry.log_output import configure, redact
from headrace.settings import definitions

logger = logging.getLogger("headrace.somewhere.deep")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    ours, root = logging.getLogger("headrace"), logging.getLogger()
    before = ours.level, root.level, list(root.handlers)
    yield
    ours.setLevel(before[0])
    root.setLevel(before[1])
    root.handlers[:] = before[2]


def test_a_record_is_one_readable_line() -> None:
    stream = io.StringIO()
    configure("text", "INFO", stream=stream, broker_id=1)
    logger.info("listening on %s:%d", "localhost", 9092)
    logger.warning("careful")
    first, second = stream.getvalue().splitlines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO  \[broker 1\] listening on localhost:9092",
        first,
    )
    assert second.endswith(" WARN  [broker 1] careful")


def test_the_time_is_the_records_own_to_the_millisecond() -> None:
    texts = []
    for log_format in ("text", "json"):
        stream = io.StringIO()
        configure(log_format, stream=stream)
        record = logging.makeLogRecord(
            {"name": "headrace", "levelno": 20, "levelname": "INFO", "msg": "now"}
        )
        record.created, record.msecs = 1_794_787_199.007, 7.0
        logging.getLogger("headrace").handle(record)
        texts.append(stream.getvalue())
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1_794_787_199))
    assert texts[0] == f"{local}.007 INFO  now\n"
    assert json.loads(texts[1])["time"] == "2026-11-15T23:59:59.007Z"


def test_it_works_before_the_broker_knows_its_id_and_may_be_repeated() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(stream=first)
    logger.info("early")
    configure(stream=second, broker_id=7)
    logger.info("late")
    assert first.getvalue().endswith(" INFO  early\n")
    assert second.getvalue().count("\n") == 1
    assert "[broker 7] late" in second.getvalue()


def test_levels() -> None:
    stream = io.StringIO()
    configure("text", "WARNING", stream=stream)
    logger.info("hidden")
    logger.error("seen")
    configure("text", "DEBUG", stream=stream)
    logger.debug("also seen")
    logging.getLogger("kazoo.client").info("chatter")
    logging.getLogger("kazoo.client").warning("trouble")
    lines = [line.split(" ", 2)[2] for line in stream.getvalue().splitlines()]
    assert lines == ["ERROR seen", "DEBUG also seen", "WARN  kazoo.client: trouble"]
    with pytest.raises(KeyError):
        configure("text", "LOUD", stream=stream)


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        configure(stream=stream)
        logger.error("bad")
    assert "\x1b[31mERROR\x1b[0m bad" in terminal.getvalue()
    assert "\x1b" not in file.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    quiet = Terminal()
    configure(stream=quiet)
    logger.error("bad")
    assert "\x1b" not in quiet.getvalue()


def test_a_traceback_is_indented_below_its_line() -> None:
    stream = io.StringIO()
    configure(stream=stream)
    fail_and_log()
    first, *below = stream.getvalue().splitlines()
    assert first.endswith(" ERROR it failed")
    assert below[0] == "    Traceback (most recent call last):"
    assert below[-1] == "    ValueError: invalid literal for int() with base 10: 'password=[hidden]"
    assert all(line.startswith("    ") for line in below)


def fail_and_log() -> None:
    try:
        int("password=hunter2")
    except ValueError:
        logger.exception("it failed")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_what_clients_choose_cannot_make_lines_or_colours(log_format: str) -> None:
    raw = io.BytesIO()
    configure(log_format, stream=io.TextIOWrapper(raw, encoding="ascii"))
    logger.warning("group %s", "a\nb\r\x1b[31m\x85\u2028ü\udc80")
    text = raw.getvalue().decode("ascii")
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


def test_json_is_one_object_per_line() -> None:
    stream = io.StringIO()
    configure("json", stream=stream, broker_id=3)
    logger.info("größer als %d", 5)
    fail_and_log()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "level": "INFO",
        "logger": "headrace.somewhere.deep",
        "message": "größer als 5",
        "broker_id": 3,
    }
    assert second["level"] == "ERROR"
    assert second["exception"].startswith("Traceback")
    assert second["exception"].endswith("'password=[hidden]")


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for table in (definitions.BROKER, definitions.UNLISTED)
        for name, setting in table.items()
        if setting.sensitive
    ),
)
def test_no_secret_setting_is_shown(name: str) -> None:
    for text in (
        f"{name}=hunter2",
        f"{name} = hunter2 and more",
        f"{{'{name}': 'hunter2 hunter2'}}",
        f'"{name}":"hunter2 \\" hunter2"',
        f"--override listener.name.a.{name}=hunter2",
    ):
        shown = redact(f"before {text}")
        assert "hunter2" not in shown
        assert shown.startswith("before ")
        assert "[hidden]" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("zk://user:hunter2@host:2181/x", "zk://user:[hidden]@host:2181/x"),
        ("Authorization: Bearer abc.def", "Authorization: [hidden]"),
        ("sasl.jaas.config=M required password='a b';\nmore", "sasl.jaas.config=[hidden]"),
        ("the password is wrong", "the password is wrong"),
        ("PLAINTEXT://localhost:9092 is taken", "PLAINTEXT://localhost:9092 is taken"),
        ("JoinRequested(token=12, group='secrets')", "JoinRequested(token=12, group='secrets')"),
    ],
)
def test_redaction(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize("part", ["x", "secret", "secret ", "://a:", 'secret="', "a.b-"])
def test_redaction_of_long_texts_is_quick(part: str) -> None:
    started = time.process_time()
    redact(part * (60_000 // len(part)))
    assert time.process_time() - started < 2
