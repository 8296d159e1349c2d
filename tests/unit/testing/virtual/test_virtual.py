"""Programs of asyncio on virtual processes: time, threads, connections, pauses and deaths."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from random import Random
from typing import Any

import pytest

from headrace.testing.virtual.network import Weather
from headrace.testing.virtual.process import Pace, VirtualProcess
from headrace.testing.virtual.scheduler import SECOND_US
from headrace.testing.virtual.world import VirtualWorld

PORT = 9092


def start(process: VirtualProcess, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    return process.loop.create_task(work)


def run(world: VirtualWorld, *tasks: "asyncio.Task[Any]", most_s: float = 1_000) -> None:
    until_us = world.scheduler.now_us + int(most_s * SECOND_US)
    while not all(task.done() for task in tasks):
        assert world.scheduler.step(), "nothing is left to happen"
        assert world.scheduler.now_us < until_us, "it takes too long"


@pytest.fixture
def world() -> Iterator[VirtualWorld]:
    with VirtualWorld(1) as world:
        yield world


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(handle: Callable[..., Awaitable[None]] = echo) -> None:
    server = await asyncio.start_server(handle, None, PORT)
    assert server.sockets[0].getsockname()[1] == PORT
    await asyncio.Event().wait()


def served(world: VirtualWorld, host: str = "server") -> VirtualProcess:
    process = world.process(host)
    start(process, serve())
    world.run_for(0.01)
    return process


def test_time_passes_only_as_it_is_waited_for(world: VirtualWorld) -> None:
    process = world.process("a")
    heard: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        heard.append((name, asyncio.get_running_loop().time()))

    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sleep("hour", 3600))
            tasks.create_task(sleep("second", 1))

    run(world, start(process, both()), most_s=4000)
    assert [name for name, _ in heard] == ["second", "hour"]
    assert heard[0][1] == pytest.approx(1, abs=0.01)
    assert heard[1][1] == pytest.approx(3600, abs=0.01)
    assert world.scheduler.steps < 30


def test_callbacks_of_one_loop_keep_their_order(world: VirtualWorld) -> None:
    process = world.process("a")
    heard: list[int] = []
    for number in range(100):
        process.loop.call_soon(heard.append, number)
    cancelled = process.loop.call_soon(heard.append, -1)
    cancelled.cancel()
    world.run_for(1)
    assert heard == list(range(100))


def test_time_outs_and_cancellations_work_as_in_asyncio(world: VirtualWorld) -> None:
    process = world.process("a")

    async def work() -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        task = asyncio.create_task(asyncio.sleep(100))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return "done"

    task = start(process, work())
    run(world, task)
    assert task.result() == "done"
    assert not process.failures


def test_an_exception_that_nobody_handles_is_noted(world: VirtualWorld) -> None:
    process = world.process("a")

    def fail() -> None:
        raise ValueError("of a callback")

    async def fail_alone() -> None:
        raise KeyError("of a task")

    process.loop.call_soon(fail)
    start(process, fail_alone())
    world.run_for(1)
    gc.collect()
    assert [type(each["exception"]) for each in process.failures] == [ValueError, KeyError]


def test_jobs_in_threads_run_beside_the_loop_and_not_in_order(world: VirtualWorld) -> None:
    process = world.process("a", pace=Pace(thread_us=5_000))
    done: list[int] = []

    def job(number: int) -> int:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        done.append(number)
        if number == 7:
            raise OSError("no")
        return number * 2

    async def work() -> list[Any]:
        jobs = [asyncio.to_thread(job, number) for number in range(20)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    task = start(process, work())
    run(world, task)
    assert sorted(done) == list(range(20))
    assert done != sorted(done)
    results = task.result()
    assert isinstance(results.pop(7), OSError)
    assert results == [2 * number for number in range(20) if number != 7]


def talk(world: VirtualWorld, text: bytes, host: str = "server") -> "asyncio.Task[bytes]":
    async def work() -> bytes:
        reader, writer = await asyncio.open_connection(host, PORT)
        writer.write(text)
        answer = await reader.readexactly(len(text))
        writer.close()
        return answer

    return start(world.process("client"), work())


def test_bytes_arrive_whole_and_in_order_in_other_pieces(world: VirtualWorld) -> None:
    weather = Weather(delay_us=5_000, late_share=0.3, late_us=50_000, split_share=0.7)
    world.network.weather = weather
    server = served(world)
    text = Random(5).randbytes(2_000_000)
    task = talk(world, text)
    run(world, task)
    assert task.result() == text
    world.run_for(10)
    assert world.network.connections(server) == 0


def test_who_writes_faster_than_the_peer_reads_is_paused(world: VirtualWorld) -> None:
    received = 0
    may_read = []

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        gate = asyncio.Event()
        may_read.append(gate)
        await gate.wait()
        while data := await reader.read(100_000):
            received += len(data)
        writer.close()

    server, client = world.process("server"), world.process("client")
    start(server, serve(slow))
    world.run_for(0.01)
    written = 0

    async def pour() -> None:
        nonlocal written
        _, writer = await asyncio.open_connection("server", PORT)
        for _ in range(100):
            writer.write(b"x" * 100_000)
            await writer.drain()
            written += 100_000
        writer.close()

    task = start(client, pour())
    world.run_for(10)
    assert 0 < written < 1_500_000
    may_read[0].set()
    run(world, task)
    world.run_for(10)
    assert received == written == 10_000_000


def test_nobody_listens(world: VirtualWorld) -> None:
    server = served(world)
    task = talk(world, b"x", host="nowhere")
    run(world, task)
    assert isinstance(task.exception(), OSError)
    world.network.refused.add(("client", "server"))
    task = talk(world, b"x")
    run(world, task)
    assert isinstance(task.exception(), ConnectionRefusedError)
    world.network.refused.clear()
    server.end()
    task = talk(world, b"x")
    run(world, task)
    assert isinstance(task.exception(), ConnectionRefusedError)
    restarted = served(world)
    task = talk(world, b"again")
    run(world, task)
    assert task.result() == b"again"
    with pytest.raises(OSError, match="in use"):
        world.network.bind(world.process("server"), None, PORT, lambda: None)
    assert not restarted.failures


@pytest.mark.parametrize("way", [("client", "server"), ("server", "client")])
def test_a_way_that_is_cut_holds_bytes_back(world: VirtualWorld, way: tuple[str, str]) -> None:
    served(world)
    client = world.process("client")
    answers: list[bytes] = []

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("server", PORT)
        for word in (b"one", b"two"):
            writer.write(word)
            answers.append(await reader.readexactly(3))
            await asyncio.sleep(1)
        writer.close()

    task = start(client, ask())
    world.run_for(0.5)
    assert answers == [b"one"]
    world.network.cut.add(way)
    world.run_for(20)
    assert answers == [b"one"]
    world.network.cut.clear()
    run(world, task, most_s=5)
    assert answers == [b"one", b"two"]


def test_a_connection_on_a_cut_way_times_out(world: VirtualWorld) -> None:
    served(world)
    dialled = talk(world, b"x" * 400_000)
    world.run_for(0.001)
    world.network.cut.add(("client", "server"))
    run(world, dialled, most_s=200)
    assert isinstance(dialled.exception(), OSError | asyncio.IncompleteReadError)
    unanswered = talk(world, b"x")
    run(world, unanswered, most_s=200)
    assert isinstance(unanswered.exception(), TimeoutError)


def test_a_dial_succeeds_when_the_way_is_whole_again(world: VirtualWorld) -> None:
    served(world)
    world.network.cut.add(("client", "server"))
    task = talk(world, b"hello")
    world.run_for(4)
    world.network.cut.clear()
    run(world, task, most_s=5)
    assert task.result() == b"hello"


def test_reset_ends_both_ends(world: VirtualWorld) -> None:
    server = served(world)
    task = talk(world, b"x")

    async def stay() -> bytes:
        reader, _ = await asyncio.open_connection("server", PORT)
        return await reader.read()

    staying = start(world.process("client"), stay())
    run(world, task)
    assert world.network.connections(server) > 0
    world.network.reset("server", "client")
    run(world, staying)
    assert isinstance(staying.exception(), ConnectionResetError)
    world.run_for(1)
    assert world.network.connections(server) == 0


def waiting_client(world: VirtualWorld) -> "asyncio.Task[bytes]":
    async def wait() -> bytes:
        reader, writer = await asyncio.open_connection("server", PORT)
        writer.write(b"hello")
        await reader.readexactly(5)
        try:
            return await reader.read()
        finally:
            writer.close()

    task = start(world.process("client"), wait())
    world.run_for(1)
    assert not task.done()
    return task


def test_a_killed_process_ends_its_connections_and_runs_no_finally(world: VirtualWorld) -> None:
    server = world.process("server")
    cleaned_up: list[str] = []

    async def program() -> None:
        try:
            await serve()
        finally:
            cleaned_up.append("finally")

    task = start(server, program())
    world.run_for(0.1)
    waiting = waiting_client(world)
    server.end()
    run(world, waiting, most_s=1)
    assert waiting.result() == b""
    world.run_for(100)
    del task
    gc.collect()
    assert cleaned_up == []
    assert not server.failures


def test_a_host_without_power_is_silent_until_it_is_back(world: VirtualWorld) -> None:
    server = served(world)
    waiting = waiting_client(world)
    world.network.silent_hosts.add("server")
    server.end(with_host=True)
    world.run_for(100)
    assert not waiting.done(), "nobody told the client"

    talking = talk(world, b"x")
    world.run_for(5)
    assert not talking.done()
    world.network.silent_hosts.clear()
    served(world)
    run(world, talking, most_s=20)
    assert talking.result() == b"x"
    assert not waiting.done(), "it sends nothing, and so nobody tells it that its peer is gone"


def test_who_writes_to_a_machine_that_was_restarted_is_reset(world: VirtualWorld) -> None:
    server = served(world)

    async def write_at_times() -> None:
        _, writer = await asyncio.open_connection("server", PORT)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(3)

    task = start(world.process("client"), write_at_times())
    world.run_for(1)
    world.network.silent_hosts.add("server")
    server.end(with_host=True)
    world.run_for(10)
    world.network.silent_hosts.clear()
    run(world, task, most_s=20)
    assert isinstance(task.exception(), ConnectionResetError)


def test_a_paused_process_does_nothing_and_knows_nothing(world: VirtualWorld) -> None:
    server = served(world)
    rang: list[float] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            await asyncio.to_thread(lambda: None)
            rang.append(asyncio.get_running_loop().time())

    start(server, tick())
    server.pause()
    task = talk(world, b"hello")
    world.run_for(30)
    assert not task.done(), "the kernel takes the connection, nobody answers"
    assert rang == []
    server.resume()
    run(world, task, most_s=1)
    world.run_for(5)
    assert rang[0] > 30
    assert len(rang) in (4, 5)


def story(seed: int) -> tuple[int, int, int]:
    weather = Weather(delay_us=5_000, late_share=0.3, late_us=50_000, split_share=0.5)
    with VirtualWorld(seed, weather) as world:
        served(world)
        tasks = [talk(world, Random(n).randbytes(10_000)) for n in range(10)]
        run(world, *tasks)
        return world.scheduler.now_us, world.scheduler.steps, world.scheduler.digest


def test_a_seed_is_the_same_story() -> None:
    assert story(1) == story(1)
    assert story(1) != story(2)
