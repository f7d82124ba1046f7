"""Where a scenario is played: three nodes made to order, in directories that vanish afterwards, and how much to do.

Both products run with their defaults, but for what is measured: Kafka with a heap of 1 GB a node, and Ottla with
`ottla.flush=os`, which is Kafka's own way with the disk, unless the scenario asks for `ack`. Topics have three
replicas, of which two have to be in sync.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers.cluster import Cluster
from tests.peers.kafka import KafkaServer


@dataclass(frozen=True)
class Sizes:
    """How much of everything. The quick ones only show that a scenario works."""

    kills: int = 50
    kafka_kills: int = 8
    restarts: int = 3
    warm_megabytes: int = 400
    megabytes: int = 600
    latency_seconds: int = 20
    idle_seconds: int = 15


QUICK = Sizes(
    kills=3, kafka_kills=1, restarts=1, warm_megabytes=5, megabytes=20, latency_seconds=3, idle_seconds=3
)


@dataclass(frozen=True)
class ClusterStage:
    """One product on one machine, for one scenario."""

    product: str
    sizes: Sizes
    directory: Path

    @contextlib.contextmanager
    def cluster(self, *, flush: str = "os", start: bool = True) -> Iterator[Cluster]:
        """Three nodes on empty directories, stopped and swept away at the end."""
        place = Path(tempfile.mkdtemp(dir=self.directory))
        settings = {"ottla.flush": flush} if self.product == "ottla" else {}
        cluster = Cluster(place, settings, product=self.product)
        for node in cluster.nodes.values():
            if isinstance(node, KafkaServer):
                node.heap = "1g"
        try:
            if start:
                cluster.start()
            yield cluster
        finally:
            for node in cluster.nodes.values():
                node.kill()
            shutil.rmtree(place, ignore_errors=True)


def make_topic(cluster: Cluster, topic: str, partitions: int = 1) -> None:
    """Create a topic of three replicas, and wait until all are in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(60)
    cluster.wait_in_sync(topic, 3)
