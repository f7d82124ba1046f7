"""Which product the compatibility tests are about: Ottla, or Apache Kafka when COMPAT_SERVER=kafka.

Every test passes on Kafka, too; that is what proves the tests.
"""

import os
from collections.abc import Callable

from tests.peers.kafka import KafkaServer
from tests.peers.ottla import OttlaServer
from tests.peers.server import Server

SERVERS: dict[str, type[Server]] = {"ottla": OttlaServer, "kafka": KafkaServer}
CHOSEN = os.environ.get("COMPAT_SERVER", "ottla")

MakeTopic = Callable[..., str]
"""The fixture that makes a topic: (partitions, suffix, settings with _ for the dot) to its name."""
