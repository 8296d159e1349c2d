"""A group shard under random requests, time, refusals by the log, and failovers.

After every event: every invariant of the machine holds; what its log says is its hard state; every
request is answered or parked, never forgotten, never answered twice; whatever can get stuck has a timer.
In the end, when everyone is silent, the groups run empty and nobody is left waiting.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.coordinator.contract import Token
from headrace.coordinator.group.events import (
    DeletedTopic,
    ExpiryTimer,
    JoinTimer,
    SessionTimer,
    SyncTimer,
)
from headrace.coordinator.group.machine import GroupMachine
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import ClassicGroup, GroupState
from headrace.coordinator.group.stored_records import decode_record
from headrace.ids import NO_TOPIC_ID
from headrace.wire.messages.leave_group import MemberIdentity
from tests.unit.coordinator.group.group_story import Protocols, Story, subscription

GROUPS = st.sampled_from(["g", "h"])
INSTANCES = st.sampled_from([None, None, "i1", "i2"])
TOPICS = st.sampled_from(["orders", "payments"])
PROTOCOLS = st.sampled_from(
    [
        [("range", subscription("orders"))],
        [("range", subscription("orders", "payments")), ("sticky", b"")],
        [("sticky", b""), ("range", subscription("payments"))],
        [("range", b"not a subscription")],
        [("other", b"")],
        [],
    ]
)
WHICH = st.integers(0, 9)


class GroupShard(RuleBasedStateMachine):
    """Random life of one shard with two groups."""

    @initialize(max_size=st.sampled_from([2, 3, 1_000]), delay_ms=st.sampled_from([0, 3_000]))
    def start(self, max_size: int, delay_ms: int) -> None:
        self.story = Story(
            GroupSettings(
                max_size=max_size,
                initial_rebalance_delay_ms=delay_ms,
                offsets_retention_ms=100_000,
                offsets_retention_check_interval_ms=30_000,
            )
        )
        self.forgotten: set[Token] = set()
        self.asked: set[Token] = set()

    # -- whom to speak for -----------------------------------------------------------------------

    def pick_member(self, group_id: str, which: int) -> str:
        """Mostly one of the group's, sometimes a pending one, sometimes nobody's."""
        group = self.story.machine.state.groups.get(group_id)
        known = ["ghost"] if which == 0 else []
        if group is not None:
            known += [*group.members, *group.pending_members]
        return known[which % len(known)] if known else "ghost"

    def generation(self, group_id: str, which: int) -> int:
        group = self.story.machine.state.groups.get(group_id)
        current = group.generation_id if group else 1
        return current - 1 if which == 9 else current

    # -- what may happen -------------------------------------------------------------------------

    @rule(
        group_id=GROUPS,
        version=st.sampled_from([0, 3, 4, 6, 9]),
        instance_id=INSTANCES,
        protocols=PROTOCOLS,
        connection_id=st.sampled_from([None, 1, 2]),
        rebalance_ms=st.sampled_from([-1, 0, 20_000, 60_000]),
    )
    def come(
        self,
        group_id: str,
        version: int,
        instance_id: str | None,
        protocols: Protocols,
        connection_id: int | None,
        rebalance_ms: int,
    ) -> None:
        token = self.story.send_join(
            group_id=group_id,
            version=version,
            instance_id=instance_id,
            protocols=protocols,
            connection_id=connection_id,
            rebalance_ms=rebalance_ms,
        )
        self.asked.add(token)

    @rule(group_id=GROUPS, which=WHICH, with_instance=st.booleans(), protocols=PROTOCOLS)
    def come_back(
        self, group_id: str, which: int, with_instance: bool, protocols: Protocols
    ) -> None:
        member_id = self.pick_member(group_id, which)
        instance_id = self.instance_of(group_id, member_id) if with_instance else None
        token = self.story.send_join(
            member_id, group_id=group_id, instance_id=instance_id, protocols=protocols
        )
        self.asked.add(token)

    def instance_of(self, group_id: str, member_id: str) -> str | None:
        group = self.story.machine.state.groups.get(group_id)
        member = group.members.get(member_id) if group else None
        return member.instance_id if member else None

    @rule(group_id=GROUPS, instance_ids=st.lists(INSTANCES, min_size=1, max_size=3))
    def a_whole_round(self, group_id: str, instance_ids: list[str | None]) -> None:
        """Random steps alone hardly ever reach a stable group, where most of the rules are."""
        for instance_id in instance_ids:
            self.asked.add(
                self.story.send_join(
                    group_id=group_id, version=3, instance_id=instance_id, rebalance_ms=20_000
                )
            )
        self.everyone_comes_back(group_id)
        self.story.sleep(3_000 * len(instance_ids))
        self.leader_assigns(group_id)

    @rule(group_id=GROUPS)
    def everyone_comes_back(self, group_id: str) -> None:
        group = self.story.machine.state.groups.get(group_id)
        members = list(group.members.values()) if group else []
        for member in members:
            token = self.story.send_join(
                member.member_id,
                group_id=group_id,
                instance_id=member.instance_id,
                protocols=member.protocols,
            )
            self.asked.add(token)

    @rule(group_id=GROUPS, which=WHICH)
    def ask_for_share(self, group_id: str, which: int) -> None:
        member_id = self.pick_member(group_id, which)
        token = self.story.send_sync(
            member_id,
            self.generation(group_id, which),
            group_id=group_id,
            version=4,
            protocol_name=None,
            assignments={member_id: b"mine"},
        )
        self.asked.add(token)

    @rule(group_id=GROUPS)
    def leader_assigns(self, group_id: str) -> None:
        group = self.story.machine.state.groups.get(group_id)
        if group is not None and group.leader_id is not None:
            shares = {member_id: member_id.encode() for member_id in group.members}
            token = self.story.send_sync(
                group.leader_id,
                group.generation_id,
                group_id=group_id,
                version=4,
                protocol_name=None,
                assignments=shares,
            )
            self.asked.add(token)

    @rule(group_id=GROUPS, which=WHICH)
    def heartbeat(self, group_id: str, which: int) -> None:
        member_id = self.pick_member(group_id, which)
        self.story.heartbeat(member_id, self.generation(group_id, which), group_id=group_id)

    @rule(group_id=GROUPS, which=WHICH, instance_id=INSTANCES)
    def leave(self, group_id: str, which: int, instance_id: str | None) -> None:
        member_id = self.pick_member(group_id, which) if instance_id is None else ""
        self.story.leave(
            MemberIdentity(member_id=member_id, group_instance_id=instance_id), group_id=group_id
        )

    @rule(
        group_id=GROUPS,
        which=WHICH,
        topic=TOPICS,
        partition=st.integers(0, 2),
        offset=st.integers(0, 9),
        retention_ms=st.sampled_from([-1, -1, 1_000]),
    )
    def commit(
        self,
        group_id: str,
        which: int,
        topic: str,
        partition: int,
        offset: int,
        retention_ms: int,
    ) -> None:
        simple = which > 6
        self.story.commit(
            offset,
            group_id=group_id,
            topic=topic,
            partition=partition,
            member_id="" if simple else self.pick_member(group_id, which),
            generation_id=-1 if simple else self.generation(group_id, which),
            retention_ms=retention_ms,
            version=4,
        )

    @rule(group_id=GROUPS, topic=TOPICS)
    def delete_offsets(self, group_id: str, topic: str) -> None:
        self.story.delete_offsets(topic, 0, 1, group_id=group_id)

    @rule(topic=TOPICS)
    def delete_topic(self, topic: str) -> None:
        self.story.delete_topics(DeletedTopic(topic, NO_TOPIC_ID))

    @rule(group_id=GROUPS)
    def delete_group(self, group_id: str) -> None:
        self.story.delete_group(group_id)

    @rule(ms=st.sampled_from([1, 100, 3_000, 9_000, 20_000, 60_000, 400_000]))
    def time_passes(self, ms: int) -> None:
        self.story.sleep(ms)

    @rule(refuse=st.booleans())
    def log_refuses(self, refuse: bool) -> None:
        self.story.refuse_appends = refuse

    @rule()
    def fail_over(self) -> None:
        self.forgotten |= self.parked()
        self.story.fail_over()

    # -- what must hold --------------------------------------------------------------------------

    def groups(self) -> list[ClassicGroup]:
        return list(self.story.machine.state.groups.values())

    def parked(self) -> set[Token]:
        return {
            token
            for group in self.groups()
            for token in (*group.awaiting_join.values(), *group.awaiting_sync.values())
        }

    @invariant()
    def the_log_says_what_the_hard_state_is(self) -> None:
        successor = GroupMachine(self.story.settings)
        for key, value in self.story.log:
            record = decode_record(key, value)
            assert record is not None
            successor.replay(record)
        assert successor.state.hard == self.story.machine.state.hard

    @invariant()
    def every_request_is_answered_or_parked(self) -> None:
        assert self.asked - self.story.answers.keys() - self.forgotten == self.parked()

    @invariant()
    def whatever_can_get_stuck_has_a_timer(self) -> None:
        timers = self.story.timers
        assert ExpiryTimer() in timers
        for group in self.groups():
            if group.state is GroupState.PREPARING_REBALANCE:
                assert JoinTimer(group.group_id) in timers
            if group.pending_sync:
                assert SyncTimer(group.group_id) in timers
            waits_for = [*group.pending_members] + [
                member.member_id
                for member in group.members.values()
                if not group.has_satisfied_heartbeat(member)
            ]
            for member_id in waits_for:
                assert SessionTimer(group.group_id, member_id) in timers

    def teardown(self) -> None:
        if hasattr(self, "story"):
            self.story.refuse_appends = False
            self.story.sleep(3_600_000)
            assert all(group.state is GroupState.EMPTY for group in self.groups())
            assert not self.parked()
            self.story.sleep(3_600_000)
            assert not self.groups()


TestGroupShard = GroupShard.TestCase
TestGroupShard.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
