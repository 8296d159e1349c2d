"""Consumer groups as each client lives in them: joining, leaving, dying; committing and resuming; all clients at once."""

from collections.abc import Callable

from tests.conformance.clients.all import CLIENTS
from tests.conformance.clients.client import Client
from tests.conformance.clients.confluent import Confluent
from tests.conformance.conftest import MakeTopic
from tests.conformance.member_process import members, wait_until_shared
from tests.conformance.samples import Received, numbered

Unique = Callable[[str], str]


def test_partitions_are_shared_when_members_join_leave_and_die(
    address: str, make_topic: MakeTopic, unique: Unique, client: Client
) -> None:
    topic = make_topic("rebalanced", partitions=4)
    with members(address, topic, unique("group")) as start:
        stays = start(client)
        wait_until_shared(4, [stays])
        leaves = start(client)
        wait_until_shared(4, [stays, leaves])
        leaves.leave()
        wait_until_shared(4, [stays])
        dies = start(client)
        wait_until_shared(4, [stays, dies])
        dies.kill()
        wait_until_shared(4, [stays])


def test_clients_of_every_kind_share_one_group(
    address: str, make_topic: MakeTopic, unique: Unique
) -> None:
    topic = make_topic("mixed-group", partitions=2 * len(CLIENTS))
    with members(address, topic, unique("group")) as start:
        wait_until_shared(2 * len(CLIENTS), [start(client) for client in CLIENTS])


def test_a_group_resumes_where_it_committed(
    address: str, make_topic: MakeTopic, unique: Unique, client: Client
) -> None:
    topic, group = make_topic("resumed"), unique("group")
    records = numbered(10)
    Confluent().produce(address, topic, 0, records, codec="none")
    first = client.consume_in_group(address, topic, group, 4)
    then = client.consume_in_group(address, topic, group, 10 - len(first))
    assert _values([*first, *then]) == [record.value for record in records]


def test_one_client_resumes_where_another_committed(
    address: str, make_topic: MakeTopic, unique: Unique
) -> None:
    topic, group = make_topic("handed-over"), unique("group")
    records = numbered(4 * len(CLIENTS))
    Confluent().produce(address, topic, 0, records, codec="none")
    received: list[Received] = []
    for client in CLIENTS:
        received += client.consume_in_group(address, topic, group, 4)
    assert _values(received) == [record.value for record in records]


def _values(received: list[Received]) -> list[bytes | None]:
    return [found.record.value for found in received]
