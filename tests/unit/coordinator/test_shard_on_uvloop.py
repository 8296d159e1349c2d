"""The shard's timer on the loop that brokers run on: a deadline that has passed gives a handle without a time."""

import asyncio

import uvloop

from headrace.coordinator.group.events import Client
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.unit.coordinator.group.test_groups import coordinator, until_loaded
from tests.unit.coordinator.memory_shard_log import MemoryLog


def test_deadlines_in_the_past_do_not_break_the_timer() -> None:
    async def story() -> None:
        failures: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failures.append(context)
        )
        async with coordinator() as (groups, runtime):
            runtime.elected(0, MemoryLog())
            await until_loaded(runtime)
            protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
            # A rebalance that ends as soon as it begins, many times over.
            joins = [
                groups.join(
                    Client(id="c", host="h", connection_id=number),
                    3,
                    JoinGroupRequest(
                        group_id="g",
                        session_timeout_ms=6000,
                        rebalance_timeout_ms=0,
                        protocol_type="consumer",
                        protocols=[protocol],
                    ),
                )
                for number in range(20)
            ]
            await asyncio.wait_for(asyncio.gather(*joins), 10)
        assert not failures

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())
