"""What a JoinGroup says about its member: protocols and timeouts, over the versions of the request. Pure."""

from headrace.coordinator.group.events import JoinRequested
from headrace.coordinator.group.state import ClassicGroup, Member, Protocols
from headrace.wire.messages.join_group import JoinGroupRequest

_FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1


def new_member(event: JoinRequested, member_id: str) -> Member:
    """A member that the group has not seen before."""
    return Member(
        member_id=member_id,
        instance_id=event.request.group_instance_id,
        client_id=event.client.id,
        client_host=event.client.host,
        rebalance_timeout_ms=_rebalance_timeout_ms(event),
        session_timeout_ms=event.request.session_timeout_ms,
        protocols=protocols_of(event.request),
        is_new=True,
    )


def update_member(group: ClassicGroup, member: Member, event: JoinRequested) -> None:
    """Take over what a known member says this time."""
    group.replace_protocols(member, protocols_of(event.request))
    member.rebalance_timeout_ms = _rebalance_timeout_ms(event)
    member.session_timeout_ms = event.request.session_timeout_ms


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """By preference; of a name that occurs twice the first counts."""
    by_name: dict[str, bytes] = {}
    for protocol in request.protocols:
        by_name.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(by_name.items())


def _rebalance_timeout_ms(event: JoinRequested) -> int:
    """Version 0 has none; the session timeout serves for both. -1 in a record means the same."""
    timeout_ms = event.request.rebalance_timeout_ms
    if event.version < _FIRST_VERSION_WITH_REBALANCE_TIMEOUT or timeout_ms < 0:
        return event.request.session_timeout_ms
    return timeout_ms
