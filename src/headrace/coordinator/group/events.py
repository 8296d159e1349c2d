"""What can happen to a group: requests as they came over the wire, and news from the cluster.

An event of a request carries its token, the version where versions differ in meaning, and the decoded
message. Nothing here knows how a message is encoded or where it came from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from headrace.coordinator.contract import Token
from headrace.ids import NO_TOPIC_ID
from headrace.log.producers.producer_state import Verification
from headrace.records.control_batch import TxnMarker
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest
from headrace.wire.messages.leave_group import LeaveGroupRequest
from headrace.wire.messages.offset_commit import OffsetCommitRequest
from headrace.wire.messages.offset_delete import OffsetDeleteRequest
from headrace.wire.messages.offset_fetch import OffsetFetchRequestGroup
from headrace.wire.messages.sync_group import SyncGroupRequest
from headrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class Client(NamedTuple):
    """Who asks. `host` is in Kafka's form, with a slash in front: `/127.0.0.1`."""

    id: str
    host: str
    connection_id: int | None = None
    """If given, a second nameless join over the same connection gives up the id of the first."""


class JoinRequested(NamedTuple):
    """JoinGroup. `fresh_uuid` becomes part of a new member's id, if one is needed."""

    token: Token
    client: Client
    version: int
    fresh_uuid: str
    request: JoinGroupRequest


class SyncRequested(NamedTuple):
    """SyncGroup."""

    token: Token
    version: int
    request: SyncGroupRequest


class HeartbeatReceived(NamedTuple):
    """Heartbeat."""

    token: Token
    request: HeartbeatRequest


class LeaveRequested(NamedTuple):
    """LeaveGroup; below version 3 the request names one member at its top level."""

    token: Token
    version: int
    request: LeaveGroupRequest


class OffsetsCommitted(NamedTuple):
    """OffsetCommit. Topics are known to exist, and carry both name and id."""

    token: Token
    version: int
    request: OffsetCommitRequest


class TxnOffsetsCommitted(NamedTuple):
    """TxnOffsetCommit. Topics are known to exist; `topic_ids` has the id of each."""

    token: Token
    version: int
    request: TxnOffsetCommitRequest
    topic_ids: Mapping[str, UUID]
    verified: Verification | None = None


class TransactionEnding(NamedTuple):
    """A transaction coordinator ends a transaction in this shard's partition."""

    token: Token
    marker: TxnMarker


class OffsetsFetched(NamedTuple):
    """One group of an OffsetFetch; below version 8 built from the request's top level."""

    token: Token
    version: int
    request: OffsetFetchRequestGroup
    require_stable: bool
    topic_id_of: Callable[[str], UUID] = lambda _: NO_TOPIC_ID  # of the topic that has the name now


class OffsetsDeleted(NamedTuple):
    """OffsetDelete."""

    token: Token
    request: OffsetDeleteRequest


class GroupsListed(NamedTuple):
    """ListGroups, as far as this shard can answer it."""

    token: Token
    states_filter: frozenset[str]
    types_filter: frozenset[str]


class GroupDescribed(NamedTuple):
    """One group of a DescribeGroups."""

    token: Token
    version: int
    group_id: str


class GroupDeleted(NamedTuple):
    """One group of a DeleteGroups."""

    token: Token
    group_id: str


class DeletedTopic(NamedTuple):
    """A topic that is gone, by name and by the id it had."""

    name: str
    topic_id: UUID


class TopicsDeleted(NamedTuple):
    """The cluster deleted topics: their committed offsets go too."""

    token: Token
    topics: tuple[DeletedTopic, ...]


GroupRequestEvent = (
    JoinRequested
    | SyncRequested
    | HeartbeatReceived
    | LeaveRequested
    | OffsetsCommitted
    | TxnOffsetsCommitted
    | TransactionEnding
    | OffsetsFetched
    | OffsetsDeleted
    | GroupsListed
    | GroupDescribed
    | GroupDeleted
    | TopicsDeleted
)


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """Timer: a member (or a pending member) has not been heard of for its session timeout."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimer:
    """Timer: the join phase has waited long enough."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncTimer:
    """Timer: the members that have not sent SyncGroup in this generation are given up."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ExpiryTimer:
    """Timer: look for expired offsets and empty groups."""
