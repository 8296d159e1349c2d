"""Whose configs are meant, and how a request about them is refused: values with Kafka's codes."""

from enum import IntEnum
from typing import NamedTuple

from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal


class ResourceType(IntEnum):
    """What configs belong to; numbers as in the config APIs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """An owner of configs; `type` is as it came over the wire.

    An empty broker name means the cluster's dynamic defaults.
    """

    type: int
    name: str


def invalid_config(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, message)


def invalid_request(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
