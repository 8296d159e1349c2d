"""Clients of the process that runs tasks, kept between tasks: Spark reuses its Python workers, and connecting takes time.

One thread runs one task at a time, so nothing is locked. A client that met an error is dropped, not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.client.idempotent_producer import IdempotentProducer, ProduceSettings
from headrace.client.leaders import Leaders
from headrace.pipelines.options.schema_options import RegistryOptions

if TYPE_CHECKING:
    from headrace.schemas.registry_client import SchemaRegistryClient

# Damaged records may refer to any number of schemas that do not exist, and come again when a task is repeated.
_UNKNOWN_SCHEMA_S: Final = 60.0

_leaders: dict[tuple[str, str], Leaders] = {}
_producers: dict[tuple[str, str, ProduceSettings], IdempotentProducer] = {}
_registries: dict[RegistryOptions, SchemaRegistryClient] = {}


def leaders_for(bootstrap_servers: str, client_id: str) -> Leaders:
    """The connections to a cluster."""
    place = (bootstrap_servers, client_id)
    if place not in _leaders:
        _leaders[place] = Leaders(bootstrap_servers, client_id=client_id)
    return _leaders[place]


def producer_for(
    bootstrap_servers: str, client_id: str, settings: ProduceSettings
) -> IdempotentProducer:
    """A producer with these settings. `drop_producer` it after an error."""
    place = (bootstrap_servers, client_id, settings)
    if place not in _producers:
        # Its connections are its own: a fetch that waits for its answer must not meet an acknowledgement.
        _producers[place] = IdempotentProducer(
            Leaders(bootstrap_servers, client_id=client_id), settings
        )
    return _producers[place]


def drop_producer(producer: IdempotentProducer) -> None:
    """Forget a producer: nobody knows which of its sequences arrived."""
    for place, known in list(_producers.items()):
        if known is producer:
            del _producers[place]
    producer.close()


def registry_for(options: RegistryOptions) -> SchemaRegistryClient:
    """The client of a schema registry. Raises SettingError for a URL that is none."""
    if options not in _registries:
        _registries[options] = new_registry_client(options)
    return _registries[options]


def new_registry_client(options: RegistryOptions) -> SchemaRegistryClient:
    """A client that is not kept here: the caller closes it. Raises SettingError for a URL that is none."""
    from headrace.schemas.registry_client import SchemaRegistryClient
    from headrace.schemas.registry_transport import TransportSettings

    return SchemaRegistryClient.connect(
        TransportSettings(
            urls=options.urls,
            request_timeout_s=options.request_timeout_s,
            total_timeout_s=options.total_timeout_s,
            credentials=options.credentials,
            ca_file=options.ca_file,
        ),
        missing_ttl_s=_UNKNOWN_SCHEMA_S,
    )
