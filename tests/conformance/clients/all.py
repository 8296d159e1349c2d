"""The table of all clients."""

from tests.conformance.clients.aiokafka_client import AioKafka
from tests.conformance.clients.client import Client
from tests.conformance.clients.confluent import Confluent
from tests.conformance.clients.java import Java
from tests.conformance.clients.kafka_python import KafkaPython
from tests.conformance.clients.kcat import Kcat

CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), AioKafka(), Kcat(), Java())
