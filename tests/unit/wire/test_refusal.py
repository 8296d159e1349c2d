"""Refusals as values and as exceptions."""

import pytest

from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused, refusal_of, require


def test_without_a_message_the_error_code_says_it() -> None:
    refusal = Refusal(ErrorCode.NOT_CONTROLLER)
    assert refusal.message is None
    assert str(refusal) == refusal.text == ErrorCode.NOT_CONTROLLER.message
    assert Refusal(ErrorCode.NOT_CONTROLLER, "elsewhere").text == "elsewhere"


def test_an_answer_without_an_error_is_no_refusal() -> None:
    assert refusal_of(0, "ignored") is None
    require(0)
    assert refusal_of(41, "elsewhere") == Refusal(ErrorCode.NOT_CONTROLLER, "elsewhere")
    assert refusal_of(30_000) == Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_refusal_that_is_raised_is_the_same_refusal() -> None:
    with pytest.raises(Refused, match="elsewhere") as raised:
        require(41, "elsewhere")
    assert raised.value.refusal == Refusal(ErrorCode.NOT_CONTROLLER, "elsewhere")
    assert raised.value.error_code is ErrorCode.NOT_CONTROLLER
    assert raised.value.message == "elsewhere"
