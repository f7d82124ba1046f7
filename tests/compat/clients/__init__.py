"""The real clients, each behind the same two verbs, so that any can write what any other reads."""

from tests.compat.clients.aio import AioKafka
from tests.compat.clients.client import CODECS, Client, Sample, Seen
from tests.compat.clients.confluent import Confluent
from tests.compat.clients.kafka_python import KafkaPython
from tests.compat.clients.kcat import Kcat

CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), AioKafka(), Kcat())

__all__ = ["CLIENTS", "CODECS", "AioKafka", "Client", "Confluent", "KafkaPython", "Kcat", "Sample", "Seen"]
