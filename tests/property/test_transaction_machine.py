"""A shard of the transaction coordinator between producers and partitions, under commits that take long, refusals, kills,
elections, late and repeated markers, and time.

All of a transaction or nothing is committed; what a producer is told comes true; no marker is written before its decision is
committed; epochs never go back; a producer that another has replaced writes nothing more; in the end nothing is open.
"""

import asyncio
from collections.abc import Coroutine
from typing import NamedTuple, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.coordinator.contract import Effect
from headrace.coordinator.coordinator_type import CoordinatorHost, ShardId
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.transaction.machine import TransactionMachine
from headrace.coordinator.transaction.markers import WriteMarkers, markers_of
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.state import ProducerIdentity
from headrace.coordinator.transaction.stored_records import decode_record
from headrace.coordinator.transaction.transactions import Transactions, transaction_coordinator
from headrace.ids import ProducerId
from headrace.wire.error_code import ErrorCode
from tests.property.transaction_world import PARTITIONS, Client, PartitionModel, TransactionKey
from tests.unit.coordinator.memory_shard_log import NOW_MS, MemoryLog, SkippingLoop
from tests.unit.coordinator.transfer_coordinator import settle

T = TypeVar("T")
NUMBERS = st.integers(0, 1_000)
TIMEOUT_MS = 60_000
UNHEARD = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


class Call(NamedTuple):
    """Markers that a coordinator writes, and to whom it will tell that they are written."""

    coordinator_epoch: int
    markers: WriteMarkers
    missing: set[int]
    answer: "asyncio.Future[object]"


class TransactionsMachine(RuleBasedStateMachine):
    """Two transactional ids in one shard, three partitions, any number of producers."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = SkippingLoop()
        self.partitions = dict(zip(PARTITIONS, (PartitionModel() for _ in PARTITIONS), strict=True))
        self.clients: list[Client] = []
        self.newest: dict[str, Client] = {}
        self.told: dict[TransactionKey, bool] = {}
        self.calls: list[Call] = []
        self.stale: list[Call] = []
        self.faults: list[str] = []
        self.epochs: dict[tuple[str, int], int] = {}
        self.last_producer_id = 0
        self.log = MemoryLog()
        self.run(self._elect(self.log))

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.loop.run_until_complete(work)

    async def _elect(self, log: MemoryLog) -> None:
        self.log = log
        coordinator = transaction_coordinator(
            TransactionSettings(),
            write_markers=self._write_markers,
            transaction_version=lambda: 2,
        )
        host = CoordinatorHost(
            wall_clock_ms=lambda: NOW_MS + round(self.loop.time() * 1_000),
            spawn=self.loop.create_task,
        )
        self.runtime = CoordinatorRuntime(coordinator, host, partition_count=lambda: 1)
        self.transactions = Transactions(self.runtime, next_producer_id=self._next_producer_id)
        self.runtime.elected(0, log)
        await self.runtime.loaded()

    async def _next_producer_id(self) -> ProducerId:
        self.last_producer_id += 1
        return ProducerId(self.last_producer_id)

    @property
    def machine(self) -> TransactionMachine:
        (machine,) = self.runtime.machines()
        assert isinstance(machine, TransactionMachine)
        return machine

    # ---- markers

    async def _write_markers(self, shard: ShardId, effect: Effect) -> object:
        assert isinstance(effect, WriteMarkers)
        decided = set()
        for key, value in self.log.records[: self.log.high_watermark]:
            record = decode_record(key, value)
            if record and record.transaction and record.transaction.status.is_prepared:
                decided.add(markers_of(record.transactional_id, record.transaction))
        # Noted, because what a runner raises is taken for a failure that a repetition may mend.
        if effect not in decided:
            self.faults.append(f"{effect} is written before the decision is committed")
        answer = self.loop.create_future()
        missing = set(range(len(effect.partitions)))
        self.calls.append(Call(shard.leader_epoch, effect, missing, answer))
        return await answer

    @precondition(lambda self: self.calls)
    @rule(number=NUMBERS, where=NUMBERS)
    def write_marker(self, number: int, where: int) -> None:
        call = self.calls[number % len(self.calls)]
        at = where % len(call.markers.partitions)
        error = self.partitions[call.markers.partitions[at]].mark(
            call.markers, call.coordinator_epoch
        )
        if error is not ErrorCode.NONE:
            self.faults.append(f"{call.markers}: {error.name}")
        call.missing.discard(at)
        if not call.missing:
            self.calls.remove(call)

            async def tell() -> None:
                if not call.answer.done():
                    call.answer.set_result(None)
                await settle()

            self.run(tell())

    @precondition(lambda self: self.stale)
    @rule(number=NUMBERS, where=NUMBERS)
    def write_marker_of_a_deposed_coordinator(self, number: int, where: int) -> None:
        call = self.stale[number % len(self.stale)]
        at = where % len(call.markers.partitions)
        self.partitions[call.markers.partitions[at]].mark(call.markers, call.coordinator_epoch)

    # ---- producers

    @rule(transactional_id=st.sampled_from(["t", "u"]), version=st.sampled_from([0, 2]))
    def start_producer(self, transactional_id: str, version: int) -> None:
        self.clients.append(Client(len(self.clients), transactional_id, version))
        self._initialize(self.clients[-1])

    @precondition(lambda self: any(each.identity is None for each in self.clients))
    @rule(number=NUMBERS)
    def initialize(self, number: int) -> None:
        waiting = [
            each
            for each in self.clients
            if each.identity is None and not each.is_busy and not each.is_dead
        ]
        if waiting:
            self._initialize(waiting[number % len(waiting)])

    def _initialize(self, client: Client) -> None:
        async def initialize() -> None:
            answer = await self.transactions.initialize_producer(
                client.transactional_id, TIMEOUT_MS, None
            )
            if answer.error is ErrorCode.NONE:
                client.identity = answer.producer
                self._expect_newer(client.transactional_id, answer.producer)
                self.newest[client.transactional_id] = client
            elif answer.error not in UNHEARD:
                self.faults.append(f"{client}: {answer}")

        self._let(client, initialize())

    def _expect_newer(self, transactional_id: str, given: ProducerIdentity) -> None:
        """Each identity is given once."""
        known = self.epochs.get((transactional_id, given.producer_id), -1)
        if given.epoch <= known:
            self.faults.append(f"{transactional_id}: {given} after epoch {known}")
        self.epochs[transactional_id, given.producer_id] = given.epoch

    def _ready(self, number: int) -> Client | None:
        ready = [each for each in self.clients if each.is_ready]
        # One of the newest, because all others are fenced.
        return ready[-1 - number % min(3, len(ready))] if ready else None

    @rule(number=NUMBERS, where=st.sampled_from(PARTITIONS))
    def write(self, number: int, where: "tuple[str, int]") -> None:
        client = self._ready(number)
        if client is None or client.repeats is not None:
            return
        (partition,) = (each for each in PARTITIONS if each == where)

        async def write() -> None:
            assert client.identity is not None
            given, key = client.identity, client.key
            added = await self.transactions.add_partitions(
                client.transactional_id, given, frozenset((partition,)), client.version
            )
            if added is ErrorCode.NONE and client.version < 2:
                verdicts = await self.transactions.verify_partitions(
                    client.transactional_id, given, frozenset((partition,))
                )
                added = verdicts[partition]
            if added is ErrorCode.NONE:
                client.is_open = True
                written = self.partitions[partition].write(given, key)
                newest = self.newest.get(client.transactional_id)
                if written and newest is not client:
                    self.faults.append(f"{client} has been replaced by {newest}, and wrote")
            elif added not in UNHEARD:
                client.is_dead = True

        self._let(client, write())

    @rule(number=NUMBERS, commit=st.booleans())
    def end(self, number: int, commit: bool) -> None:
        client = self._ready(number)
        if client is None or not (client.is_open or client.repeats is not None):
            return
        commit = commit if client.repeats is None else client.repeats

        async def end() -> None:
            assert client.identity is not None
            client.repeats = commit
            answer = await self.transactions.end(
                client.transactional_id,
                client.identity,
                commit=commit,
                client_version=client.version,
            )
            if answer.error is ErrorCode.NONE:
                self.told[client.key] = commit
                if client.version >= 2:
                    self._expect_newer(client.transactional_id, answer.producer)
                    client.identity = answer.producer
                client.repeats, client.is_open = None, False
                client.count += 1
            elif answer.error not in UNHEARD:
                client.is_dead = True

        self._let(client, end())

    def _let(self, client: Client, work: Coroutine[object, object, None]) -> None:
        """One request at a time, which may take long."""
        client.is_busy = True

        async def guarded() -> None:
            try:
                await work
            finally:
                client.is_busy = False

        async def start() -> None:
            self.loop.create_task(guarded())
            await settle()

        self.run(start())

    # ---- log, time, elections

    @rule(what=st.sampled_from(["hold", "release", "release", "refuse"]))
    def disturb(self, what: str) -> None:
        """One rule, so that requests are more frequent than what is in their way."""
        if what == "hold":
            self.log.held = True
        elif what == "refuse":
            self.log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        else:
            self.release()

    def release(self) -> None:
        async def release() -> None:
            self.log.refusal = None
            self.log.release()
            await settle()

        self.run(release())

    @rule(seconds=st.sampled_from([0.5, 20.0, 2 * TIMEOUT_MS / 1_000]))
    def wait(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(transactional_id=st.sampled_from(["t", "u"]), where=st.sampled_from(PARTITIONS))
    def replace_a_producer_that_writes(
        self, transactional_id: str, where: "tuple[str, int]"
    ) -> None:
        """Two producers of one id, of which the first does not know of the second."""
        self.start_producer(transactional_id, 0)
        self.start_producer(transactional_id, 2)
        self.write(1, where)

    @rule(number=NUMBERS)
    def elect_another(self, number: int) -> None:
        """The next leader has all that is committed, and maybe more."""
        log = self.log
        uncommitted = len(log.records) - log.high_watermark
        kept = log.high_watermark + number % (uncommitted + 1)
        following = MemoryLog(log.records[:kept], leader_epoch=log.leader_epoch + 1)
        following.high_watermark, following.held = log.high_watermark, log.held

        async def elect() -> None:
            log.lose()
            self.runtime.stop()
            await settle()
            self.stale += self.calls
            self.calls.clear()
            await self._elect(following)
            if not following.held:
                following.release()
            await settle()

        self.run(elect())

    # ---- what must hold

    @invariant()
    def nothing_goes_amiss(self) -> None:
        assert not self.faults, self.faults
        self.machine.check()

    @invariant()
    def all_or_nothing(self) -> None:
        committed = set().union(*(each.committed for each in self.partitions.values()))
        aborted = set().union(*(each.aborted for each in self.partitions.values()))
        assert not committed & aborted
        for key, commit in self.told.items():
            assert key not in (aborted if commit else committed), (key, commit)

    def teardown(self) -> None:
        """When nothing is in the way any more, every transaction ends, and every marker is written."""
        self.release()
        self.elect_another(0)
        for _ in range(10):
            self.wait(TIMEOUT_MS / 1_000)
            while self.calls:
                self.write_marker(0, next(iter(self.calls[0].missing)))
        assert not self.machine.state.ongoing
        assert not self.machine.state.prepared
        assert not [each.open for each in self.partitions.values() if each.open]
        self.nothing_goes_amiss()
        self.all_or_nothing()
        self.run(self._stop())
        self.loop.close()

    async def _stop(self) -> None:
        self.runtime.stop()
        await settle()


TestTransactions = TransactionsMachine.TestCase
TestTransactions.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
