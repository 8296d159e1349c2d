"""A stand-in for the transaction coordinators of a cluster: partitions are verified as the test says."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NoReturn

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.txn_verification import (
    Errors,
    TxnProducer,
    TxnSupport,
    TxnVerification,
)
from headrace.client.exchange import Disconnected
from headrace.ids import TopicPartition
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.wire.error_code import ErrorCode


def default_settings() -> LiveSettings:
    return LiveSettings(BrokerSettings.from_properties({"node.id": "1"}, default_log_dir="/d"))


async def nobody_listens(host: str, port: int, *, client_id: str) -> NoReturn:
    raise Disconnected(f"{client_id} finds nobody at {host}:{port}")


class ScriptedVerification(TxnVerification):
    """Says yes, unless `errors` has a word for the partition; only when `answers` is set."""

    def __init__(self) -> None:
        def spawn(_: Coroutine[Any, Any, None]) -> object:
            raise AssertionError("nobody is asked over the network")

        cluster = ClusterView(1, "a-cluster", tells_dialled_address=False)
        super().__init__(cluster, default_settings(), nobody_listens, lambda: 0.0, spawn)
        self.asked: list[tuple[TxnProducer, tuple[TopicPartition, ...], TxnSupport]] = []
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.is_on = True
        self.was_asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    def is_needed(self, support: TxnSupport) -> bool:
        return self.is_on or support is TxnSupport.IMPLICIT

    async def verify(
        self,
        producer: TxnProducer,
        partitions: Iterable[TopicPartition],
        support: TxnSupport,
        begin: Callable[[], None],
    ) -> Errors:
        asked = tuple(partitions)
        self.begin = begin
        begin()
        self.asked.append((producer, asked, support))
        self.was_asked.set()
        await self.answers.wait()
        return {each: self.errors[each] for each in asked if each in self.errors}
