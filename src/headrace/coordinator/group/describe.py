"""Looking at groups: ListGroups and DescribeGroups. Pure, changes nothing."""

from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import GroupDescribed, GroupsListed
from headrace.coordinator.group.state import GroupState
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from headrace.wire.messages.list_groups import ListedGroup

GROUP_TYPE = "classic"
DEAD = "Dead"
"""What DescribeGroups calls a group that does not exist."""

_FIRST_DESCRIBE_VERSION_WITH_GROUP_ID_NOT_FOUND = 6


def list_groups(event: GroupsListed, context: EventContext) -> None:
    """Handle this shard's part of a ListGroups. Filters compare without regard to case."""
    states = {state.strip().lower() for state in event.states_filter}
    types = {kind.strip().lower() for kind in event.types_filter}
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=GROUP_TYPE,
        )
        for group in context.state.groups.values()
        if (not states or group.state.value.lower() in states)
        and (not types or GROUP_TYPE.lower() in types)
    ]
    context.reply(event.token, listed)


def describe_group(event: GroupDescribed, context: EventContext) -> None:
    """Handle one group of a DescribeGroups. Subscriptions are shown only while they are in force."""
    group = context.state.groups.get(event.group_id)
    if group is None:
        context.reply(event.token, _missing(event))
        return
    is_stable = group.state is GroupState.STABLE
    protocol_name = (group.protocol_name or "") if is_stable else ""
    context.reply(
        event.token,
        DescribedGroup(
            group_id=group.group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol_name,
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(protocol_name) if is_stable else b"",
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        ),
    )


def _missing(event: GroupDescribed) -> DescribedGroup:
    if event.version < _FIRST_DESCRIBE_VERSION_WITH_GROUP_ID_NOT_FOUND:
        return DescribedGroup(group_id=event.group_id, group_state=DEAD)
    return DescribedGroup(
        group_id=event.group_id,
        group_state=DEAD,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {event.group_id} not found.",
    )
