"""What brokers ask of the controller, as bytes: which events travel, and what answers them (pure)."""

from typing import Any, Final, NamedTuple

import msgspec

from headrace.controller.brokers import OfflinePartitionsSeen, ShutdownAnswer, ShutdownWanted
from headrace.controller.configs import AlterConfigs, ConfigAnswer
from headrace.controller.core import Event
from headrace.controller.deletions import DeleteTopics, RemoveReplicas
from headrace.controller.growth import CreatePartitions
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


class Question(NamedTuple):
    """A kind of event and the type of its answer."""

    event: Any
    answer: Any


_QUESTIONS: Final = {
    question.event.__name__: question
    for question in (
        Question(CreateTopics, tuple[TopicAnswer, ...]),
        Question(DeleteTopics, tuple[TopicAnswer, ...]),
        Question(CreatePartitions, tuple[TopicAnswer, ...]),
        Question(AlterConfigs, tuple[ConfigAnswer, ...]),
        Question(OfflinePartitionsSeen, None),
        Question(AlterPartition, AlterPartitionAnswer),
        Question(ElectLeaders, tuple[PartitionAnswer, ...]),
        Question(AlterReassignments, tuple[PartitionAnswer, ...]),
        Question(ListReassignments, tuple[Move, ...]),
        Question(AllocateProducerIds, ProducerIdBlock),
        Question(ShutdownWanted, ShutdownAnswer),
        Question(ReplicasOffline, ErrorCode),
        Question(RemoveReplicas, None),
        Question(RaiseEpochs, ErrorCode),
    )
}

_encode = msgspec.msgpack.Encoder().encode


def encode_event(event: Event[Any]) -> tuple[str, bytes]:
    """An event's kind and bytes."""
    return type(event).__name__, _encode(event)


def decode_event(kind: str, data: bytes) -> Event[Any]:
    """The event that `encode_event` wrote. Raises MalformedMessage."""
    question = _QUESTIONS.get(kind)
    if question is None:
        raise MalformedMessage(f"{kind!r} is nothing a controller is asked")
    try:
        event: Event[Any] = msgspec.msgpack.decode(data, type=question.event)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"{kind}: {error}") from error
    return event


def encode_answer(answer: Any) -> bytes:
    """An answer's bytes."""
    return _encode(answer)


def decode_answer(kind: str, data: bytes) -> Any:
    """The answer to an event of this kind. Raises MalformedMessage."""
    try:
        return msgspec.msgpack.decode(data, type=_QUESTIONS[kind].answer)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"answer to {kind}: {error}") from error
