"""The catalogue of small requests that ask for much: nobody else waits long, and memory stays bounded.

What each costs on a quiet machine, beside Apache Kafka, stands in docs/operating/limits.md.
"""

from collections.abc import Callable

import pytest

from tests.robustness.conftest import StartBroker
from tests.robustness.small_requests import CATALOGUE, Sender, play
from tests.support.process_memory import MIB

LONGEST_WAIT_S = 5.0  # a fraction of it on a machine that has nothing else to do
MOST_MEMORY_BYTES = 300 * MIB


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.__name__)
def test_a_small_request_costs_others_little(
    entry: Callable[[Sender], None], start_broker: StartBroker
) -> None:
    broker = start_broker()
    cost = play(entry, broker.port, broker.pid)
    assert cost.bystander_s < LONGEST_WAIT_S
    assert cost.memory_bytes < MOST_MEMORY_BYTES
