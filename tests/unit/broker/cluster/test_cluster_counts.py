"""Changes of the ISR are counted by the leader, unclean elections by the controller, and each of them once."""

from uuid import UUID

import pytest

from headrace.broker.cluster.cluster_counts import ClusterCounts
from headrace.broker.requests.answer_errors import error_codes
from headrace.controller.changes import (
    ChangeBatch,
    ControllerElected,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from headrace.controller.cluster_state import ClusterState
from headrace.controller.values import PartitionState
from headrace.coordination.store import SessionState
from headrace.ids import NO_TOPIC_ID
from headrace.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from headrace.wire.messages.heartbeat import HeartbeatResponse
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.broker.pages.metrics_world import World

BEFORE = PartitionState((1, 2, 3), (1, 2), 1, 4, 7, elr=(3,))


def counted(after: PartitionState, *, broker_id: int = 1, controller_id: int = 1) -> ClusterCounts:
    state = ClusterState()
    state.apply(ControllerElected(controller_id, 1))
    state.apply(TopicCreated("orders", NO_TOPIC_ID, (BEFORE,)))
    counts = ClusterCounts()
    change = PartitionChanged("orders", 0, after)
    counts.note_changes(broker_id, state, ChangeBatch(1, 0, (change,)))
    counts.note_changes(broker_id, state, ChangeBatch(1, 0, (change,), is_snapshot=True))
    unknown = PartitionChanged("others", 0, after)
    counts.note_changes(broker_id, state, ChangeBatch(1, 0, (unknown,)))
    return counts


def changed(*, isr: tuple[int, ...] = (1, 2), leader: int = 1) -> PartitionState:
    return PartitionState((1, 2, 3), isr, leader, 4 + (leader != 1), 8)


@pytest.mark.parametrize(
    ("isr", "shrinks", "expands"),
    [((1,), 1, 0), ((1, 2, 3), 0, 1), ((1, 3), 1, 1), ((1, 2), 0, 0)],
)
def test_the_leader_counts_changes_of_the_isr(
    isr: tuple[int, ...], shrinks: int, expands: int
) -> None:
    counts = counted(changed(isr=isr))
    assert (counts.isr_shrinks, counts.isr_expands) == (shrinks, expands)
    elsewhere = counted(changed(isr=isr), broker_id=2)
    assert (elsewhere.isr_shrinks, elsewhere.isr_expands) == (0, 0)


def test_a_topic_created_again_is_not_compared_with_its_predecessor() -> None:
    state = ClusterState()
    state.apply(ControllerElected(1, 1))
    state.apply(TopicCreated("orders", NO_TOPIC_ID, (BEFORE,)))
    counts = ClusterCounts()
    changes = (
        TopicDeleted("orders", NO_TOPIC_ID, ()),
        TopicCreated("orders", UUID(int=1), (PartitionState((4,), (4,), 4, 0, 0),)),
        PartitionChanged("orders", 0, PartitionState((4,), (4,), 4, 1, 1)),
    )
    counts.note_changes(1, state, ChangeBatch(1, 0, changes))
    assert counts.unclean_elections == 0


@pytest.mark.parametrize(("leader", "unclean"), [(2, 0), (3, 0), (4, 1), (-1, 0), (1, 0)])
def test_the_controller_counts_leaders_that_may_lack_records(leader: int, unclean: int) -> None:
    assert counted(changed(leader=leader)).unclean_elections == unclean
    assert counted(changed(leader=leader), controller_id=2).unclean_elections == 0


def test_sessions_are_counted() -> None:
    counts = ClusterCounts()
    for state in (SessionState.SUSPENDED, SessionState.OVERDUE, SessionState.LOST):
        counts.note_session(state, 5)
    counts.note_session(SessionState.CONNECTED, 9)
    assert counts.session_disconnects == counts.session_expires == counts.session_connects == 1


def test_error_codes_are_found_wherever_they_are() -> None:
    assert error_codes(HeartbeatResponse(error_code=27)) == {27: 1}
    created = CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name="a", error_code=36),
            CreatableTopicResult(name="b"),
            CreatableTopicResult(name="c", error_code=36),
        ]
    )
    assert error_codes(created) == {36: 2, 0: 1}
    found = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="a",
                partitions=[ListOffsetsPartitionResponse(partition_index=0, error_code=6)],
            )
        ]
    )
    assert error_codes(found) == {6: 1}


def test_they_are_on_the_page() -> None:
    world = World()
    world.sources.counts.isr_shrinks = 2
    world.sources.requests.observe_errors(12, HeartbeatResponse(error_code=27))
    page = world.read()
    errors = "kafka_network_requestmetrics_errors_total"
    assert page.value(errors, request="Heartbeat", error="REBALANCE_IN_PROGRESS") == 1
    assert page.value("kafka_server_replicamanager_isrshrinks_total") == 2
    assert page.value("kafka_server_replicamanager_isrexpands_total") == 0
