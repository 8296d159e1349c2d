"""Transaction coordinator of one broker: what the broker's APIs call, each request as an event for the shard that owns its id.

Owns the supply of producer ids to events that turn out to need one, because a core cannot ask the controller. Shards and
leadership are left to the `CoordinatorRuntime`, the form of requests and answers to the APIs.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from headrace.coordinator.contract import Token
from headrace.coordinator.coordinator_type import CoordinatorType, RunEffect
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.transaction import events
from headrace.coordinator.transaction.events import IdentityAnswer, TransactionRequestEvent
from headrace.coordinator.transaction.machine import TransactionMachine
from headrace.coordinator.transaction.refusals import refusal
from headrace.coordinator.transaction.settings import TransactionSettings
from headrace.coordinator.transaction.state import ProducerIdentity, Status
from headrace.coordinator.transaction.stored_records import (
    FIXED_VERSION,
    FLEXIBLE_VERSION,
    TransactionRecord,
    decode_record,
    encode_record,
)
from headrace.ids import ProducerId, TopicPartition
from headrace.internal_topics import TRANSACTION_STATE
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages import describe_transactions, list_transactions

TransactionRuntime = CoordinatorRuntime[TransactionRequestEvent, TransactionRecord]
ResponseT = TypeVar("ResponseT")


def transaction_coordinator(
    settings: TransactionSettings,
    *,
    write_markers: RunEffect,
    transaction_version: Callable[[], int],
) -> CoordinatorType[TransactionRequestEvent, TransactionRecord]:
    """The transaction coordinator as a kind of coordinator.

    `transaction_version` is the cluster's finalized level of that feature: it says in which version records are written.
    """

    def encode(record: TransactionRecord) -> tuple[bytes, bytes | None]:
        version = FLEXIBLE_VERSION if transaction_version() > 0 else FIXED_VERSION
        return encode_record(record, version)

    return CoordinatorType(
        topic=TRANSACTION_STATE,
        keys="transactional ids",
        make_machine=lambda: TransactionMachine(settings),
        encode=encode,
        decode=decode_record,
        refuse=refusal,
        commit_timeout_ms=settings.commit_timeout_ms,
        run_effect=write_markers,
    )


class Transactions:
    """The transaction coordinator of one broker. One event loop owns it."""

    def __init__(
        self,
        runtime: TransactionRuntime,
        *,
        next_producer_id: Callable[[], Awaitable[ProducerId | None]],
    ) -> None:
        """`next_producer_id` gives an id that nobody has had, or None while the controller gives none."""
        self._runtime = runtime
        self._next_producer_id = next_producer_id

    async def initialize_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> IdentityAnswer:
        """InitProducerId. `expected` is what the producer has, if it wants to go on after an error."""
        return await self._ask_for_identity(
            transactional_id,
            lambda token, fresh: events.ProducerIdAsked(
                token=token,
                transactional_id=transactional_id,
                timeout_ms=timeout_ms,
                expected=expected,
                fresh_producer_id=fresh,
            ),
        )

    async def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        client_version: int,
    ) -> ErrorCode:
        """AddPartitionsToTxn, AddOffsetsToTxn: all of the partitions or none."""
        return await self._ask(
            transactional_id,
            lambda token: events.PartitionsAdded(
                token=token,
                transactional_id=transactional_id,
                producer=producer,
                partitions=partitions,
                client_version=client_version,
            ),
            ErrorCode,
        )

    async def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: frozenset[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """AddPartitionsToTxn that only asks."""
        return await self._ask(
            transactional_id,
            lambda token: events.PartitionsVerified(
                token=token,
                transactional_id=transactional_id,
                producer=producer,
                partitions=partitions,
            ),
            dict,
        )

    async def end(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        *,
        commit: bool,
        client_version: int,
    ) -> IdentityAnswer:
        """EndTxn. Answered once the outcome is committed; the markers follow."""
        return await self._ask_for_identity(
            transactional_id,
            lambda token, fresh: events.EndAsked(
                token=token,
                transactional_id=transactional_id,
                producer=producer,
                commit=commit,
                client_version=client_version,
                fresh_producer_id=fresh,
            ),
        )

    async def describe(self, transactional_id: str) -> describe_transactions.TransactionState:
        """One transactional id of a DescribeTransactions."""
        return await self._ask(
            transactional_id,
            lambda token: events.TransactionDescribed(
                token=token, transactional_id=transactional_id
            ),
            describe_transactions.TransactionState,
        )

    async def list_all(
        self,
        *,
        states: frozenset[str],
        producer_ids: frozenset[int],
        longer_than_ms: int,
        matches: Callable[[str], bool],
    ) -> Sequence[list_transactions.TransactionState] | ErrorCode:
        """ListTransactions: the transactional ids coordinated by this broker. An error while one of its shards is loading."""
        answers = self._runtime.ask_all(
            lambda token: events.TransactionsListed(
                token=token,
                states=states,
                producer_ids=producer_ids,
                longer_than_ms=longer_than_ms,
                matches=matches,
            )
        )
        listed: list[list_transactions.TransactionState] = []
        for answer in answers:
            part = await answer
            if not isinstance(part, ErrorCode):
                listed += _expect(part, list)
            elif part is not ErrorCode.NOT_COORDINATOR:
                return part
        return listed

    # -- what can be counted ---------------------------------------------------------------------

    @property
    def transactions_by_status(self) -> dict[Status, int]:
        """How many transactional ids are coordinated here, per status."""
        counts: Counter[Status] = Counter(dict.fromkeys(Status, 0))
        for machine in self._machines():
            counts.update(machine.transactions_by_status)
        return dict(counts)

    # -- to the shard ----------------------------------------------------------------------------

    def _machines(self) -> Iterator[TransactionMachine]:
        for machine in self._runtime.machines():
            assert isinstance(machine, TransactionMachine)
            yield machine

    async def _ask_for_identity(
        self,
        transactional_id: str,
        event_for: Callable[[Token, ProducerId | None], TransactionRequestEvent],
    ) -> IdentityAnswer:
        answer = await self._runtime.ask(transactional_id, lambda token: event_for(token, None))
        if isinstance(answer, events.NeedsProducerId):
            fresh = await self._next_producer_id()
            if fresh is None:
                return IdentityAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            answer = await self._runtime.ask(
                transactional_id, lambda token: event_for(token, fresh)
            )
        return _expect(answer, IdentityAnswer)

    async def _ask(
        self,
        transactional_id: str,
        event_for: Callable[[Token], TransactionRequestEvent],
        response_type: type[ResponseT],
    ) -> ResponseT:
        return _expect(await self._runtime.ask(transactional_id, event_for), response_type)


def _expect(response: object, response_type: type[ResponseT]) -> ResponseT:
    assert isinstance(response, response_type), response
    return response
