"""Requests of brokers to the controller, as bytes: which events can be sent, and the type of each answer (pure)."""

from typing import Any, Final, NamedTuple

import msgspec

from headrace.controller.brokers import OfflinePartitionsSeen, ShutdownAnswer, ShutdownWanted
from headrace.controller.configs import AlterConfigs, ConfigAnswer
from headrace.controller.core import Event
from headrace.controller.create_partitions import CreatePartitions
from headrace.controller.deletions import DeleteTopics, RemoveReplicas
from headrace.controller.features import FeatureAnswer, UpdateFeatures
from headrace.controller.isr import AlterPartition, AlterPartitionAnswer
from headrace.controller.leaders import ElectLeaders
from headrace.controller.offline_replicas import ReplicasOffline
from headrace.controller.producer_ids import AllocateProducerIds, ProducerIdBlock
from headrace.controller.raise_epochs import RaiseEpochs
from headrace.controller.reassignment import (
    AlterReassignments,
    ListReassignments,
    Move,
    PartitionAnswer,
)
from headrace.controller.topics import CreateTopics, TopicAnswer
from headrace.errors import MalformedMessage
from headrace.wire.error_code import ErrorCode


class ControllerRequest(NamedTuple):
    """A kind of event and the type of its answer."""

    event: Any
    answer: Any


_REQUESTS: Final = {
    request.event.__name__: request
    for request in (
        ControllerRequest(CreateTopics, tuple[TopicAnswer, ...]),
        ControllerRequest(DeleteTopics, tuple[TopicAnswer, ...]),
        ControllerRequest(CreatePartitions, tuple[TopicAnswer, ...]),
        ControllerRequest(AlterConfigs, tuple[ConfigAnswer, ...]),
        ControllerRequest(OfflinePartitionsSeen, None),
        ControllerRequest(AlterPartition, AlterPartitionAnswer),
        ControllerRequest(ElectLeaders, tuple[PartitionAnswer, ...]),
        ControllerRequest(AlterReassignments, tuple[PartitionAnswer, ...]),
        ControllerRequest(ListReassignments, tuple[Move, ...]),
        ControllerRequest(AllocateProducerIds, ProducerIdBlock),
        ControllerRequest(ShutdownWanted, ShutdownAnswer),
        ControllerRequest(ReplicasOffline, ErrorCode),
        ControllerRequest(RemoveReplicas, None),
        ControllerRequest(RaiseEpochs, ErrorCode),
        ControllerRequest(UpdateFeatures, FeatureAnswer),
    )
}

_encode = msgspec.msgpack.Encoder().encode


def encode_event(event: Event[Any]) -> tuple[str, bytes]:
    """An event's kind and bytes."""
    return type(event).__name__, _encode(event)


def decode_event(kind: str, data: bytes) -> Event[Any]:
    """The event that `encode_event` wrote. Raises MalformedMessage."""
    request = _REQUESTS.get(kind)
    if request is None:
        raise MalformedMessage(f"{kind!r} is nothing a controller is asked")
    try:
        event: Event[Any] = msgspec.msgpack.decode(data, type=request.event)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"{kind}: {error}") from error
    return event


def encode_answer(answer: Any) -> bytes:
    """An answer's bytes."""
    return _encode(answer)


def decode_answer(kind: str, data: bytes) -> Any:
    """The answer to an event of this kind. Raises MalformedMessage."""
    try:
        return msgspec.msgpack.decode(data, type=_REQUESTS[kind].answer)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"answer to {kind}: {error}") from error
