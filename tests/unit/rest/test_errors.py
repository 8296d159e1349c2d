"""Kafka's errors in Confluent's codes."""

import pytest

from headrace.rest import errors
from headrace.wire.error_code import ErrorCode


@pytest.mark.parametrize(
    ("code", "status", "number"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 404, 40403),
        (ErrorCode.TOPIC_ALREADY_EXISTS, 400, 40002),
        (ErrorCode.INVALID_CONFIG, 400, 40002),
        (ErrorCode.SECURITY_DISABLED, 400, 40002),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 403, 40301),
        (ErrorCode.SASL_AUTHENTICATION_FAILED, 401, 40101),
        (ErrorCode.MESSAGE_TOO_LARGE, 413, 413),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 429, 42901),
        (ErrorCode.BROKER_NOT_AVAILABLE, 503, 50302),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 500, 50003),
        (ErrorCode.REQUEST_TIMED_OUT, 500, 50003),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, 400, 40002),
        (ErrorCode.INVALID_REQUIRED_ACKS, 500, 50002),
    ],
)
def test_kafka_errors(code: ErrorCode, status: int, number: int) -> None:
    found = errors.of_kafka(code, "why")
    assert (found.status, found.code, found.message) == (status, number, "why")
    assert errors.of_kafka(code).message == code.message


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_kafka_error_has_an_answer(code: ErrorCode) -> None:
    found = errors.of_kafka(code)
    assert 400 <= found.status < 600
    assert found.code == found.status or found.code // 100 == found.status
