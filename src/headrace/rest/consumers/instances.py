"""The consumer instances of the proxy: found by group and name, limited in number, closed when nobody uses them. A rim module."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headrace.rest import errors
from headrace.rest.consumers.forms import InstanceSettings
from headrace.rest.consumers.instance import ConsumerInstance
from headrace.rest.consumers.kafka_consumer import DEFAULTS, KafkaConsumer
from headrace.rest.consumers.record_answers import RecordDecoder
from headrace.rest.schemas.schema_choice import SchemaChoice

_log = logging.getLogger(__name__)
_LOOK_S: Final = 1.0
_CLOSE_S: Final = 10.0
_LEAST_POLL_INTERVAL_MS: Final = 300_000
_GREATEST_POLL_INTERVAL_MS: Final = 86_400_000


class InstancesSettings(NamedTuple):
    """What counts for all instances."""

    server_id: str
    bootstrap_servers: str
    consumer: Mapping[str, str]
    timeout_ms: int
    maximum: int


class OpenInstance(NamedTuple):
    """An instance and what its client asked for."""

    instance: ConsumerInstance
    settings: InstanceSettings


class ConsumerInstances:
    """Open instances by group and name."""

    def __init__(self, settings: InstancesSettings, schemas: SchemaChoice | None) -> None:
        self._settings = settings
        self._schemas = schemas
        self._open: dict[
            tuple[str, str], OpenInstance | None
        ] = {}  # None while one is being opened
        self._closing: set[asyncio.Task[None]] = set()
        self._expiry = asyncio.create_task(self._expire(), name="rest-consumer-expiry")
        self.expired = 0

    def __len__(self) -> int:
        """How many instances there are."""
        return len(self._open)

    async def create(self, group: str, wanted: InstanceSettings) -> str:
        """Open an instance; returns its name. Raises RestError."""
        name = wanted.name or self._new_name()
        key = (group, name)
        if key in self._open:
            raise errors.consumer_exists()
        if len(self._open) >= self._settings.maximum:
            raise errors.overloaded(
                f"There are {len(self._open)} consumer instances, and no more are allowed; "
                "delete those that are not used."
            )
        config = self._config(group, wanted)
        decoder = RecordDecoder(
            wanted.format, None if self._schemas is None else self._schemas.for_reading
        )
        instance = ConsumerInstance(name, lambda: KafkaConsumer(config), decoder)
        self._open[key] = None
        try:
            await instance.open()
        except BaseException:
            del self._open[key]
            raise
        self._open[key] = OpenInstance(instance, wanted)
        return name

    def find(self, group: str, name: str) -> OpenInstance:
        """An open instance. Raises RestError."""
        found = self._open.get((group, name))
        if found is None:
            raise errors.consumer_not_found()
        return found

    async def delete(self, group: str, name: str) -> None:
        """Close an instance. Raises RestError."""
        found = self.find(group, name)
        del self._open[group, name]
        await found.instance.close(_CLOSE_S)

    async def close(self) -> None:
        """Close all of them."""
        self._expiry.cancel()
        found = [each for each in self._open.values() if each is not None]
        self._open.clear()
        await asyncio.gather(
            *(each.instance.close(_CLOSE_S) for each in found),
            *self._closing,
            return_exceptions=True,
        )

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            since = asyncio.get_running_loop().time() - self._settings.timeout_ms / 1000
            for key, found in list(self._open.items()):
                if found is not None and found.instance.is_idle(since):
                    group, name = key
                    _log.info(
                        "consumer instance %s of group %s is closed: no request for %d ms",
                        name,
                        group,
                        self._settings.timeout_ms,
                    )
                    del self._open[key]
                    self.expired += 1
                    closing = asyncio.create_task(found.instance.close(_CLOSE_S))
                    self._closing.add(closing)
                    closing.add_done_callback(self._closing.discard)

    def _new_name(self) -> str:
        server = f"{self._settings.server_id}-" if self._settings.server_id else ""
        return f"rest-consumer-{server}{uuid.uuid4()}"

    def _config(self, group: str, wanted: InstanceSettings) -> Mapping[str, Any]:
        # A client may read as rarely as its instance lives, without being taken out of its group.
        interval = max(_LEAST_POLL_INTERVAL_MS, self._settings.timeout_ms)
        return {
            **DEFAULTS,
            "max.poll.interval.ms": str(min(interval, _GREATEST_POLL_INTERVAL_MS)),
            **self._settings.consumer,
            **wanted.consumer,
            "bootstrap.servers": self._settings.bootstrap_servers,
            "group.id": group,
        }
