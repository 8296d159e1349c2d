"""The compass of compatibility: every case runs against Headrace and against Apache Kafka, and the answers must agree.

A new case is a new function in `cases/`. Where we differ knowingly, `KNOWN_DIFFERENCES` says why; a case that agrees
again must leave that table.
"""

import importlib
import inspect
import pkgutil
import uuid
from collections.abc import Iterator

import pytest

from tests.differential import cases
from tests.differential.plain import differences
from tests.differential.requests import LATEST, batch, list_offsets, produce
from tests.differential.script import ENDED_EARLY, Case, Script, Step, run
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import Broker
from tests.support.headrace_process import HeadraceProcess

KNOWN_DIFFERENCES: dict[str, str] = {
    "configs.unknown_operations_are_refused": "Kafka says UNKNOWN_SERVER_ERROR, we say INVALID_REQUEST",
    "produce.duplicates_get_their_first_offset": "Kafka knows the last five batches of a producer, we know six",
}


def all_cases() -> dict[str, Case]:
    """Every public function of the case modules, by module and name."""
    found: dict[str, Case] = {}
    for module_info in pkgutil.iter_modules(cases.__path__):
        module = importlib.import_module(f"{cases.__name__}.{module_info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                found[f"{module_info.name}.{name}"] = function
    return found


CASES = all_cases()


@pytest.fixture(scope="session")
def other_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """The broker that is compared with Apache Kafka; with --broker apache-kafka that is Kafka itself."""
    if request.config.getoption("--broker") == [ApacheKafka.name]:
        yield request.getfixturevalue("apache_kafka")
    else:
        with HeadraceProcess(tmp_path_factory.mktemp("headrace")) as process:
            yield process


def compared(left: list[Step], right: list[Step]) -> list[str]:
    """The differences of two transcripts, each with the request that it answers."""
    found = []
    for number, (ours, theirs) in enumerate(zip(left, right, strict=False), start=1):
        if ours.title != theirs.title:
            found.append(f"answer {number}: to {ours.title} against {theirs.title}")
            return found
        title = f"answer {number}, {ours.title}: "
        found += [title + line for line in differences(ours.answer, theirs.answer)]
    if len(left) != len(right):
        found.append(f"{len(left)} answers against {len(right)}")
    return found


@pytest.mark.parametrize("name", CASES)
def test_answers_agree_with_apache_kafka(
    request: pytest.FixtureRequest, apache_kafka: ApacheKafka, other_broker: Broker, name: str
) -> None:
    if name in KNOWN_DIFFERENCES and other_broker.name != ApacheKafka.name:
        request.applymarker(pytest.mark.xfail(reason=KNOWN_DIFFERENCES[name], strict=True))
    theirs = run(CASES[name], apache_kafka.port, f"{uuid.uuid4().hex[:8]}-")
    ours = run(CASES[name], other_broker.port, f"{uuid.uuid4().hex[:8]}-")
    assert theirs, "a case must ask something"
    assert ENDED_EARLY not in theirs, "use `ask_to_be_closed` where Kafka hangs up"
    found = compared(ours, theirs)
    assert not found, "ours != Kafka's\n" + "\n".join(found)


def test_a_difference_would_be_reported(apache_kafka: ApacheKafka) -> None:
    def one_record(script: Script) -> None:
        topic = script.topic("a")
        script.ask(produce(topic, batch(b"x")), 9)
        script.ask(list_offsets(topic, LATEST), 7)

    def two_records(script: Script) -> None:
        topic = script.topic("a")
        script.ask(produce(topic, batch(b"x", b"y")), 9)
        script.ask(list_offsets(topic, LATEST), 7)

    left = run(one_record, apache_kafka.port, f"{uuid.uuid4().hex[:8]}-")
    right = run(two_records, apache_kafka.port, f"{uuid.uuid4().hex[:8]}-")
    assert compared(left, right) == [
        "answer 2, ListOffsets v7: .topics[0].partitions[0].offset: 1 != 2"
    ]


def test_the_table_of_known_differences_names_cases() -> None:
    assert set(KNOWN_DIFFERENCES) <= set(CASES)
