"""Every shipped example on a real broker and a real Spark, against plain Python on the same events, late and double ones too."""

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.pipelines.redrive import redrive
from tests.pipelines.example_run import ExampleRun
from tests.pipelines.postgres import running_postgres
from tests.support.spark_topics import Topics

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(minute: float) -> str:
    return (NOON + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_word_count(spark: SparkSession, own_topics: Topics, tmp_path: Path) -> None:
    for name, partitions in (("lines", 3), ("word-counts", 2)):
        own_topics.create_named(name, partitions)
    example = ExampleRun(spark, own_topics, "word_count", tmp_path)
    lines = ["The quick brown fox", "the lazy dog; the end", "", "Fox & dog"] * 5
    own_topics.send("lines", lines[:11])
    example.once()
    own_topics.send("lines", lines[11:])
    example.once()
    expected = Counter(word for line in lines for word in re.split(r"\W+", line.lower()) if word)
    newest = {each["word"]: each["count"] for each in example.found("word-counts")}
    assert newest == expected


def video_events() -> list[list[dict[str, Any]]]:
    """Portions in the order in which they arrive: late but not too late, too late, double."""

    def play(number: int, minute: float, user: str = "ann") -> dict[str, Any]:
        video, category = f"v{number % 4}", ("cats", "news")[number % 2]
        return {
            "event_id": f"e{number}",
            "user": user,
            "video": video,
            "category": category,
            "seconds": number,
            "at": at(minute),
        }

    first = [play(number, number / 2, ("ann", "bob")[number % 3 == 0]) for number in range(60)]
    late = [play(100, 26.5), play(101, 25.1, "bob")]
    too_late = [play(200, 1.0), play(201, 4.0)]
    return [first, [*late, first[58], *too_late, first[59]], [play(300, 300.0)]]


def test_video_events(spark: SparkSession, own_topics: Topics, tmp_path: Path) -> None:
    for name in ("player-events", "user-preferences", "hot-videos"):
        own_topics.create_named(name, 2)
    example = ExampleRun(spark, own_topics, "video_events", tmp_path)
    portions = video_events()
    for portion in portions:
        example.send("player-events", portion, key="user")
        example.once()

    too_late = {"e200", "e201"}
    counted = {
        each["event_id"]: each
        for portion in portions[:2]
        for each in portion
        if each["event_id"] not in too_late
    }
    seconds: Counter[tuple[str, str, datetime]] = Counter()
    plays: Counter[tuple[str, datetime]] = Counter()
    for each in counted.values():
        when = moment(each["at"])
        seconds[each["user"], each["category"], when.replace(minute=0, second=0)] += each["seconds"]
        slide = when.replace(minute=when.minute - when.minute % 5, second=0)
        for end in (slide + timedelta(minutes=5), slide + timedelta(minutes=10)):
            plays[each["video"], end] += 1
    assert {
        (each["user"], each["category"], moment(each["hour"])): each["seconds"]
        for each in example.found("user-preferences")
    } == dict(seconds)
    found = example.found("hot-videos")
    assert {(each["video"], moment(each["until"])): each["plays"] for each in found} == dict(plays)
    assert len(found) == len(plays), "each window once"


def test_orders(spark: SparkSession, own_topics: Topics, tmp_path: Path) -> None:
    for name in ("orders", "payments", "paid-orders", "orders-by-country"):
        own_topics.create_named(name, 2)
    own_topics.create_named("customers", 2, cleanup_policy="compact")
    own_topics.send_pairs(
        "customers",
        [
            ("c1", '{"name":"Old","country":"SE"}'),
            ("c2", '{"name":"Bo","country":"NO"}'),
            ("c3", '{"name":"Gone","country":"DK"}'),
        ],
    )
    own_topics.send_pairs("customers", [("c1", '{"name":"Ann","country":"SE"}'), ("c3", None)])
    customers = {"c1": ("Ann", "SE"), "c2": ("Bo", "NO")}

    def order(number: int) -> dict[str, Any]:
        return {
            "order_id": f"o{number}",
            "customer_id": f"c{number % 4}",
            "amount": float(number),
            "at": at(number),
        }

    def payment(number: int, after: float) -> dict[str, Any]:
        return {"order_id": f"o{number}", "method": "card", "at": at(number + after)}

    orders = [order(number) for number in range(20)]
    delays = {number: (5.0, 59.0, 61.0)[number % 3] for number in range(20) if number != 7}
    payments = [payment(number, delay) for number, delay in delays.items()]
    example = ExampleRun(spark, own_topics, "orders", tmp_path)
    example.send("orders", orders[:12] + orders[:3], key="order_id")
    example.send("payments", payments[:14], key="order_id")
    example.once()
    example.send("orders", orders[12:] + orders[11:12], key="order_id")
    example.send("payments", payments[14:] + payments[13:14], key="order_id")
    example.once()

    paid = sorted((f"o{number}", float(number)) for number, delay in delays.items() if delay <= 60)
    assert (
        sorted((each["order_id"], each["amount"]) for each in example.found("paid-orders")) == paid
    )
    expected = {
        each["order_id"]: customers.get(each["customer_id"], (None, None)) for each in orders
    }
    found = example.found("orders-by-country")
    assert {each["order_id"]: (each.get("name"), each.get("country")) for each in found} == expected
    assert len(found) == len(expected)


def test_fraud(spark: SparkSession, own_topics: Topics, tmp_path: Path) -> None:
    for package in ("google.protobuf", "pandas"):
        pytest.importorskip(package, reason=f"transformWithState needs the package {package}")
    for name in ("charges", "suspicions"):
        own_topics.create_named(name, 2)
    amounts = (0.5, 20.0, 900.0, 0.2, 600.0)

    def charge(number: int, card: str, amount: float, minute: float) -> dict[str, Any]:
        return {"charge_id": f"x{number}", "card": card, "amount": amount, "at": at(minute)}

    charges = [
        charge(
            number,
            card=f"card{number % 5}",
            amount=amounts[(number * 7 + number // 5) % 5],
            minute=(number * 11 + (200 if number > 20 else 0)) / 60,
        )
        for number in range(40)
    ]
    late = [charge(100, "card9", 0.1, 3.0), charge(101, "card9", 501.0, 3.5)]
    too_late = [charge(200, "card8", 0.1, 1.0), charge(201, "card8", 501.0, 1.5)]
    example = ExampleRun(spark, own_topics, "fraud", tmp_path)
    for portion in (
        [*charges[:22], late[0]],
        [*charges[20:], late[1]],  # two of them again
        [charge(300, "card7", 20.0, 60.0)],
        too_late,
    ):
        example.send("charges", portion, key="card")
        example.once()

    expected: list[tuple[str, str, str]] = []
    tiny: dict[str, dict[str, Any]] = {}
    for each in [*charges, *late]:
        last = tiny.get(each["card"])
        if each["amount"] < 1:
            tiny[each["card"]] = each
        elif (
            last
            and each["amount"] > 500
            and moment(each["at"]) - moment(last["at"]) <= timedelta(minutes=1)
        ):
            del tiny[each["card"]]
            expected.append((each["card"], last["charge_id"], each["charge_id"]))
    found = [
        (each["card"], each["tried_with"], each["charge_id"])
        for each in example.found("suspicions")
    ]
    assert len(expected) > 1
    assert sorted(found) == sorted(expected)


def test_activity(spark: SparkSession, own_topics: Topics, tmp_path: Path) -> None:
    for name in ("page-views", "visits", "popular-pages"):
        own_topics.create_named(name, 2)

    def views(user: str, *minutes: float) -> list[dict[str, Any]]:
        return [
            {
                "view_id": f"{user}{minute}",
                "user": user,
                "page": f"/{int(minute) % 3}",
                "at": at(minute),
            }
            for minute in minutes
        ]

    first = [*views("ann", 0, 4, 12, 25, 26), *views("bob", 3, 30)]
    second = [
        *views("ann", 33, 80),
        *views("bob", 24),
        *views("bob", 30),
    ]  # 24 is late, 30 comes again
    example = ExampleRun(spark, own_topics, "activity", tmp_path)
    for portion in (first, second, views("eve", 500)):
        example.send("page-views", portion, key="user")
        example.once()

    counted = {each["view_id"]: each for each in (*first, *second)}
    by_user: dict[str, list[datetime]] = defaultdict(list)
    pages: Counter[tuple[str, datetime]] = Counter()
    for each in counted.values():
        when = moment(each["at"])
        by_user[each["user"]].append(when)
        pages[each["page"], when.replace(minute=0)] += 1
    visits: dict[tuple[str, datetime], int] = {}
    for user, moments in by_user.items():
        began = last = min(moments)
        for when in sorted(moments):
            if when - last > timedelta(minutes=10):
                began = when
            visits[user, began] = visits.get((user, began), 0) + 1
            last = when
    assert {
        (each["user"], moment(each["began"])): each["pages"] for each in example.found("visits")
    } == visits
    assert {
        (each["page"], moment(each["hour"])): each["views"]
        for each in example.found("popular-pages")
    } == dict(pages)


def test_logs_and_their_dead_letters(
    spark: SparkSession, own_topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "archive"
    monkeypatch.setenv("LOGS_DIRECTORY", str(archive))
    own_topics.create_named("logs", 2)
    own_topics.create_named("logs-dead-letters")
    lines = [
        {
            "service": f"s{number % 3}",
            "level": ("INFO", "ERROR")[number % 4 == 0],
            "message": f"m{number}",
            "at": at(number * 100),
        }
        for number in range(40)
    ]
    example = ExampleRun(spark, own_topics, "logs", tmp_path / "state")
    example.send("logs", lines[:25])
    own_topics.send("logs", ["what is this", '{"at": "soon"}'], key="odd")
    example.once()
    example.send("logs", lines[25:])
    example.once()
    rows = spark.read.parquet(str(archive)).collect()
    found = sorted((row.service, row.level, row.message, str(row.day)) for row in rows)
    assert found == sorted(
        (each["service"], each["level"], each["message"], each["at"][:10]) for each in lines
    )
    assert {path.name for path in archive.glob("day=*/level=*")} == {"level=INFO", "level=ERROR"}
    letters = own_topics.read("logs-dead-letters")
    assert [each.value for each in letters] == [b"what is this", b'{"at": "soon"}']

    servers = own_topics.bootstrap_servers
    assert redrive(servers, "logs-dead-letters", dry_run=True).sent == {"logs": 2}
    assert redrive(servers, "logs-dead-letters").sent == {"logs": 2}
    assert redrive(servers, "logs-dead-letters").sent == {}, "each goes back once"
    example.once()
    again = own_topics.read("logs-dead-letters")[2:]
    assert [dict(each.headers)["headrace.attempt"] for each in again] == [b"2", b"2"]
    given_up = redrive(servers, "logs-dead-letters", max_attempts=2)
    assert (given_up.sent, given_up.given_up) == ({}, 2)


@contextmanager
def shop_database(kind: str, directory: Path) -> Iterator[tuple[str, Any]]:
    """The URL of a database, and a connection to it."""
    if kind == "sqlite":
        path = directory / "shop.db"
        with closing(sqlite3.connect(path)) as connection:
            yield f"sqlite:///{path}", connection
        return
    with running_postgres() as url:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(url) as connection:
            yield url, connection


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_database(
    spark: SparkSession,
    own_topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    with shop_database(kind, tmp_path) as (url, shop):
        monkeypatch.setenv("SHOP_DATABASE", url)
        changes_and_upserts(spark, own_topics, tmp_path, shop)


def changes_and_upserts(spark: SparkSession, own_topics: Topics, tmp_path: Path, shop: Any) -> None:
    for name in ("products", "stock"):
        own_topics.create_named(name, 2)
    shop.execute(
        "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price FLOAT, changed INTEGER)"
    )
    shop.execute("CREATE TABLE stock (id INTEGER PRIMARY KEY, pieces INTEGER)")
    for number in range(1, 6):  # the first version is 0
        shop.execute(f"INSERT INTO products VALUES ({number}, 'p{number}', 1.5, {number - 1})")
    shop.commit()
    counts = [{"id": number % 3, "pieces": number} for number in range(12)]
    example = ExampleRun(spark, own_topics, "database", tmp_path / "state")
    example.send("stock", counts[:8], key="id")
    example.once()
    shop.execute("UPDATE products SET price = 9.5, changed = 6 WHERE id = 2")
    shop.execute("INSERT INTO products VALUES (6, 'p6', 2.5, 7)")
    shop.commit()
    example.send("stock", counts[8:] + counts[11:], key="id")
    example.once()
    changes = [(each["id"], each["price"]) for each in example.found("products")]
    assert sorted(changes) == sorted(
        [*((number, 1.5) for number in range(1, 6)), (2, 9.5), (6, 2.5)]
    )
    expected = {each["id"]: each["pieces"] for each in counts}
    assert dict(shop.execute("SELECT id, pieces FROM stock").fetchall()) == expected


def test_declarative(spark: SparkSession, own_topics: Topics, tmp_path: Path) -> None:
    for name in ("whispered", "shouted"):
        own_topics.create_named(name)
    example = ExampleRun(spark, own_topics, "declarative", tmp_path)
    own_topics.send("whispered", ["hush", "psst!"])
    example.once()
    own_topics.send("whispered", ["shh"])
    example.once()
    assert own_topics.values("shouted") == [b"HUSH", b"PSST!", b"SHH"]
    assert sorted(row.value for row in spark.read.table("whispers").collect()) == [
        "hush",
        "psst!",
        "shh",
    ]
    assert [
        row.value for row in spark.read.parquet(str(tmp_path / "tables" / "longest")).collect()
    ] == ["psst!"]
    spark.sql("DROP TABLE whispers")
    spark.sql("DROP TABLE longest")
