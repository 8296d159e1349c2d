"""Checkpoints of log start offsets on demand: many wishes make one, and none is forgotten."""

import asyncio

from headrace.broker.replicas.log_start_sync import LogStartSync


def test_wishes_during_a_checkpoint_make_one_more() -> None:
    async def scenario() -> None:
        may_be_written = asyncio.Semaphore(0)
        begun: list[int] = []
        written: list[int] = []

        async def write() -> None:
            begun.append(len(begun))
            await may_be_written.acquire()

        sync = LogStartSync(write)
        both_written = asyncio.Event()

        def note() -> None:
            written.append(len(begun))
            if len(written) == 2:
                both_written.set()

        sync.written.add(note)
        running = asyncio.create_task(sync.run())
        await asyncio.sleep(0)
        assert not begun, "nobody asked"
        sync.request()
        sync.request()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (begun, written) == ([0], [])
        sync.request()  # this one came too late for the files that are being written
        sync.request()
        may_be_written.release()
        may_be_written.release()
        await both_written.wait()
        assert written == [1, 2]
        running.cancel()

    asyncio.run(scenario())
