"""The stages of a request: what passes the steps between decode and handle, and what a step can do."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.broker import api_table
from headrace.broker.net.connection import Connection
from headrace.broker.net.frame_buffer import Frame
from headrace.broker.requests.answer_errors import error_codes
from headrace.broker.requests.dispatch import BoundApi, Dispatcher
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.requests.request_metrics import RequestMetrics
from headrace.broker.requests.request_steps import RequestSteps
from headrace.broker.security.principal import ANONYMOUS
from headrace.errors import MalformedMessage
from headrace.wire.api_keys import ApiKey, request_class, response_class
from headrace.wire.codec import decode, encode, message_decoder
from headrace.wire.error_code import ErrorCode
from headrace.wire.headers import (
    RequestHeader,
    encode_request_header,
    response_body_offset,
    response_tags_from,
)
from headrace.wire.message import Response
from headrace.wire.messages.produce import ProduceResponse
from tests.property.produce_world import Asked, World
from tests.unit.broker.apis.one_broker import Listener, connection_to
from tests.unit.broker.requests.test_error_answers import sample

ALL_APIS = (*api_table.APIS, *api_table.INTERNAL_APIS)
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class Step:
    """Notes what it sees, and answers what it is told to."""

    def __init__(self, answer: ErrorCode | None = None) -> None:
        self.answer = answer
        self.contexts: list[RequestContext] = []
        self.requests: list[Any] = []
        self.correlation_ids: list[int] = []

    def __call__(
        self, context: RequestContext, request: Any, frames: Sequence[Frame]
    ) -> ErrorCode | None:
        self.contexts.append(context)
        self.requests.append(request)
        self.correlation_ids += (int.from_bytes(frame[4:8]) for frame in frames)
        return self.answer


def dispatcher(steps: RequestSteps, handled: list[ApiKey]) -> Dispatcher:
    """Offers all APIs; a handler notes that it was called, and fails."""

    def bound(key: ApiKey) -> BoundApi:
        def handle(request: Any, context: RequestContext) -> None:
            handled.append(key)
            raise AssertionError("handled")

        first, last = api_table.versions(key)
        return BoundApi(
            key=key,
            is_internal=key in api_table.INTERNAL_APIS,
            tags_from=response_tags_from(key),
            first_version=first,
            last_version=last,
            decode=message_decoder(request_class(key)),
            handle=handle,
        )

    made = Dispatcher({key: bound(key) for key in ALL_APIS}, RequestMetrics(), lambda: 0.0, steps)
    made.open()
    return made


def frame_of(key: ApiKey, version: int) -> bytearray:
    header = RequestHeader(key, version, 7, "client")
    body = encode(sample(request_class(key), version), version)
    return bytearray(encode_request_header(header) + body)


def answer_of(key: ApiKey, version: int, answers: Sequence[object]) -> Response:
    (answer,) = answers
    assert isinstance(answer, list)
    frame = b"".join(answer)[4:]
    start = response_body_offset(frame, key, version)
    return decode(response_class(key), version, bytearray(frame[start:]))


@pytest.mark.parametrize("key", ALL_APIS)
def test_a_step_sees_every_api_and_can_refuse_it(key: ApiKey) -> None:
    step, handled = Step(REFUSED), list[ApiKey]()
    _, version = api_table.versions(key)
    connection = connection_to()
    answers = dispatcher(RequestSteps(authorise=step), handled)(
        connection, [frame_of(key, version)]
    )
    assert handled == []
    assert error_codes(answer_of(key, version, answers))[REFUSED]
    (context,) = step.contexts
    assert (context.api_key, context.version, context.client_id) == (key, version, "client")
    assert (context.principal, context.listener_name) == (ANONYMOUS, "PLAINTEXT")
    assert str(context.principal) == "User:ANONYMOUS"
    assert type(step.requests[0]) is request_class(key)


@pytest.mark.parametrize("key", ALL_APIS)
def test_a_handler_that_fails_is_answered_with_an_error(key: ApiKey) -> None:
    step, handled = Step(), list[ApiKey]()
    _, version = api_table.versions(key)
    answers = dispatcher(RequestSteps(authorise=step), handled)(
        connection_to(), [frame_of(key, version)]
    )
    assert handled == [key]
    assert error_codes(answer_of(key, version, answers))[ErrorCode.UNKNOWN_SERVER_ERROR]


def test_steps_are_passed_in_their_order_until_one_refuses() -> None:
    authenticate, authorise, quota = Step(), Step(REFUSED), Step()
    steps = RequestSteps(quota=quota, authorise=authorise, authenticate=authenticate)
    dispatcher(steps, [])(connection_to(), [frame_of(ApiKey.LIST_GROUPS, 0)])
    assert (authenticate.correlation_ids, authorise.correlation_ids) == ([7], [7])
    assert quota.correlation_ids == []


def test_a_step_can_close_the_connection() -> None:
    def unauthenticated(context: RequestContext, request: Any, frames: Sequence[Frame]) -> None:
        raise MalformedMessage("not authenticated")

    steps = RequestSteps(authenticate=unauthenticated)
    with pytest.raises(MalformedMessage):
        dispatcher(steps, [])(connection_to(), [frame_of(ApiKey.LIST_GROUPS, 0)])


@pytest.mark.parametrize("key", ALL_APIS)
def test_internal_apis_are_offered_on_the_inter_broker_listener_only(key: ApiKey) -> None:
    handled: list[ApiKey] = []
    _, version = api_table.versions(key)
    connection = Connection(Listener("CLIENTS", is_inter_broker=False))
    dispatch = dispatcher(RequestSteps(), handled)
    if key in api_table.INTERNAL_APIS:
        with pytest.raises(MalformedMessage):
            dispatch(connection, [frame_of(key, version)])
        assert handled == []
    else:
        dispatch(connection, [frame_of(key, version)])
        assert handled == [key]


# ---- the fast path


def produce(number: int, topic: str = "orders") -> bytearray:
    return Asked(9, 1, "client", ((topic, 0),), (b"value",), 0, (-1, -1), "").frame(number)


def error_of(answer: object) -> int:
    assert isinstance(answer, list)
    body = bytearray(b"".join(answer)[9:])
    response = decode(ProduceResponse, 9, body)
    return response.responses[0].partition_responses[0].error_code


def test_a_step_sees_what_a_fast_path_recognises_and_can_refuse_it() -> None:
    step = Step()
    world, connection = World(steps=RequestSteps(authorise=step)), connection_to()
    partition = world.partitions.get("orders", 0)
    assert partition is not None
    world.dispatch(connection, [produce(1)])
    assert connection.known_requests is not None
    answers = world.dispatch(connection, [produce(number) for number in range(2, 6)])
    assert len(answers) == 4
    assert step.correlation_ids == [1, 2, 3, 4, 5]
    assert step.requests[1].topic_data[0].name == "orders", "without records, but in the same form"
    assert step.contexts[1] == step.contexts[0]
    world.dispatch(connection, [produce(6)])
    assert step.requests[2] is step.requests[1], "so that a step can remember its decision"
    assert step.contexts[2] is step.contexts[1]
    assert partition.log.log_end_offset == 6
    step.answer = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    refused = world.dispatch(connection, [produce(number) for number in (7, 8)])
    assert [error_of(answer) for answer in refused] == [step.answer] * 2
    assert [answer[0][4:8] for answer in refused if isinstance(answer, list)] == [
        (7).to_bytes(4),
        (8).to_bytes(4),
    ]
    assert partition.log.log_end_offset == 6
    step.answer = None
    world.dispatch(connection, [produce(9)])
    assert partition.log.log_end_offset == 7
    assert step.correlation_ids == list(range(1, 10))


def test_a_request_that_is_known_from_another_connection_passes_the_steps_of_its_own() -> None:
    step = Step()
    world = World(steps=RequestSteps(authorise=step))
    first, second = connection_to(), connection_to()
    for connection in (first, second, first, second):
        world.dispatch(connection, [produce(1)])
    seen = [context.connection for context in step.contexts]
    assert seen == [first, second, first, second]


def test_what_a_fast_path_leaves_undone_is_not_seen_twice() -> None:
    step = Step()
    world, connection = World(steps=RequestSteps(quota=step)), connection_to()
    asked = Asked(9, 1, "client", (("orders", 0),), (b"value",), 0, (-1, -1), "")
    world.dispatch(connection, [asked.frame(1)])
    frames = [
        asked.frame(2),
        asked._replace(fault="checksum").frame(3),  # the handler refuses it
        asked.frame(4),
    ]
    while frames:
        answers = world.dispatch(connection, frames)
        del frames[: len(answers)]
    assert step.correlation_ids == [1, 2, 3, 4]
    assert connection.admitted_requests == 0


def test_requests_before_opening_wait_and_pass_the_steps_then() -> None:
    async def story() -> None:
        step, handled = Step(REFUSED), list[ApiKey]()
        waiting = dispatcher(RequestSteps(authorise=step), handled)
        waiting._is_open = False
        waiting._opened.clear()
        (answer,) = waiting(connection_to(), [frame_of(ApiKey.LIST_GROUPS, 0)])
        assert asyncio.iscoroutine(answer)
        later = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        assert step.correlation_ids == []
        waiting.open()
        assert isinstance(await later, list)
        assert step.correlation_ids == [7]

    asyncio.run(story())
