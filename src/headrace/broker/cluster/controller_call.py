"""Sends a client's request on to the controller. Returns its answer, or the error code if there is none."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from headrace.controller.driver import NotController, UnknownToController
from headrace.coordination.store import StoreFailed
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

A = TypeVar("A")


TIMED_OUT = Refusal(ErrorCode.REQUEST_TIMED_OUT, None)


async def ask_controller(call: Awaitable[A], timeout_ms: int | None = None) -> A | Refusal:
    """Wait for the controller's answer. The error codes are retriable ones, but for an older controller's."""
    try:
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            return await call
    except TimeoutError:
        return TIMED_OUT
    except NotController:
        return Refusal(
            ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
        )
    except UnknownToController as unknown:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, str(unknown))
    except StoreFailed as failure:
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(failure))
