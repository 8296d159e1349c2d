"""Requests of brokers to the controller, as bytes: which events can be sent, and the type of each answer (pure)."""

from typing import Any, Final, NamedTuple

import msgspec

from headrace.controller.brokers import ControlledShutdown, ElectOfflinePartitions, ShutdownAnswer
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
    """A type of event, the type of its answer, and the event's name on the wire.

    Brokers of different releases ask each other's controller. A name therefore stays when its class is renamed.
    """

    name: str
    event: Any
    answer: Any


_REQUESTS: Final = (
    ControllerRequest("CreateTopics", CreateTopics, tuple[TopicAnswer, ...]),
    ControllerRequest("DeleteTopics", DeleteTopics, tuple[TopicAnswer, ...]),
    ControllerRequest("CreatePartitions", CreatePartitions, tuple[TopicAnswer, ...]),
    ControllerRequest("AlterConfigs", AlterConfigs, tuple[ConfigAnswer, ...]),
    ControllerRequest("OfflinePartitionsSeen", ElectOfflinePartitions, None),
    ControllerRequest("AlterPartition", AlterPartition, AlterPartitionAnswer),
    ControllerRequest("ElectLeaders", ElectLeaders, tuple[PartitionAnswer, ...]),
    ControllerRequest("AlterReassignments", AlterReassignments, tuple[PartitionAnswer, ...]),
    ControllerRequest("ListReassignments", ListReassignments, tuple[Move, ...]),
    ControllerRequest("AllocateProducerIds", AllocateProducerIds, ProducerIdBlock),
    ControllerRequest("ShutdownWanted", ControlledShutdown, ShutdownAnswer),
    ControllerRequest("ReplicasOffline", ReplicasOffline, ErrorCode),
    ControllerRequest("RemoveReplicas", RemoveReplicas, None),
    ControllerRequest("RaiseEpochs", RaiseEpochs, ErrorCode),
    ControllerRequest("UpdateFeatures", UpdateFeatures, FeatureAnswer),
)
_BY_NAME: Final = {request.name: request for request in _REQUESTS}
_NAMES: Final = {request.event: request.name for request in _REQUESTS}

_encode = msgspec.msgpack.Encoder().encode


def encode_event(event: Event[Any]) -> tuple[str, bytes]:
    """An event's name on the wire, and its bytes."""
    return _NAMES[type(event)], _encode(event)


def decode_event(kind: str, data: bytes) -> Event[Any]:
    """The event that `encode_event` wrote. Raises MalformedMessage."""
    request = _BY_NAME.get(kind)
    if request is None:
        raise MalformedMessage(f"{kind!r} is no request to a controller")
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
        return msgspec.msgpack.decode(data, type=_BY_NAME[kind].answer)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"answer to {kind}: {error}") from error
