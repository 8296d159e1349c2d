"""The topic `_schemas` when a registry starts: a broker that has not heard of a new topic is asked again."""

from typing import Any, cast

import pytest

from headrace.client.admin.admin import Admin
from headrace.client.admin.partitions import FoundOffset
from headrace.client.retries import BlockingTime
from headrace.ids import TopicPartition
from headrace.registry import topic_preparation
from headrace.registry.topic_preparation import prepare
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused

PLACE = TopicPartition("_schemas", 0)


class Clock(BlockingTime):
    """Goes on when somebody sleeps."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds


def end_after(monkeypatch: pytest.MonkeyPatch, *answers: ErrorCode | int) -> int:
    """What `prepare` returns for a new topic, if the question for its end is answered so; the last answer stays."""
    left = list(answers)

    def list_offsets(*_: Any) -> dict[TopicPartition, FoundOffset | Refusal]:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, ErrorCode):
            return {PLACE: Refusal(answer)}
        return {PLACE: FoundOffset(offset=answer, timestamp=-1, leader_epoch=0)}

    monkeypatch.setattr(topic_preparation, "list_offsets", list_offsets)
    monkeypatch.setattr(topic_preparation, "describe_topics", lambda *_: {})
    monkeypatch.setattr(topic_preparation, "_create", lambda *_: None)
    return prepare(cast(Admin, None), "_schemas", 3, Clock())


def test_a_broker_that_does_not_know_the_new_topic_yet_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end_after(monkeypatch, unknown, unknown, 7) == 7


@pytest.mark.parametrize(
    "error", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
)
def test_an_error_that_stays_is_told(monkeypatch: pytest.MonkeyPatch, error: ErrorCode) -> None:
    with pytest.raises(Refused) as told:
        end_after(monkeypatch, error)
    assert told.value.error_code is error
