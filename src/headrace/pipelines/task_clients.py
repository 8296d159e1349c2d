"""Clients of the process that runs tasks, kept between tasks: Spark reuses its Python workers, and connecting takes time.

One thread runs one task at a time, so nothing is locked. A client that met an error is dropped, not kept.
"""

from headrace.client.idempotent_producer import IdempotentProducer, ProduceSettings
from headrace.client.leaders import Leaders

_leaders: dict[tuple[str, str], Leaders] = {}
_producers: dict[tuple[str, str, ProduceSettings], IdempotentProducer] = {}


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
