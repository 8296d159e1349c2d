"""The error codes are Kafka's, each with a text."""

import kio.schema.errors

from headrace.wire.error_code import ErrorCode
from headrace.wire.error_text import TEXTS


def test_codes_and_retriability_are_those_of_kio() -> None:
    ours = {(code.name, code.value): code.retriable for code in ErrorCode}
    theirs = {
        (code.name.upper(), int(code.value)): code.retriable for code in kio.schema.errors.ErrorCode
    }
    assert ours == theirs


def test_every_code_has_a_text() -> None:
    assert set(TEXTS) == set(ErrorCode.__members__)
    assert ErrorCode.NOT_COORDINATOR.message == "This broker is not the coordinator."


def test_a_code_of_the_future_is_an_unknown_server_error() -> None:
    assert ErrorCode.of(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.of(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
