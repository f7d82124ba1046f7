"""Where a scenario is played: servers made to order, in directories that vanish afterwards, and how much to do.

Both servers run with their defaults, but for what is measured: Kafka with a heap of 1 GB, and Ottla with
`ottla.flush=os`, which is Kafka's own way with the disk, unless the scenario asks for `ack`.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.peers.kafka import KafkaServer
from tests.peers.ottla import OttlaServer
from tests.peers.server import Server


@dataclass(frozen=True)
class Sizes:
    """How much of everything. The quick ones only show that a scenario works."""

    warm_requests: int = 20_000
    warm_megabytes: int = 200
    requests: int = 60_000
    transactions: int = 900
    megabytes: int = 1_000
    latency_seconds: int = 20
    flat_small_megabytes: int = 100
    flat_large_megabytes: int = 20_000
    flat_repeats: int = 9
    partitions: int = 2_000
    idle_seconds: int = 15
    connections: int = 5_000


QUICK = Sizes(
    warm_requests=500,
    warm_megabytes=5,
    requests=2_000,
    transactions=60,
    megabytes=20,
    latency_seconds=2,
    flat_small_megabytes=5,
    flat_large_megabytes=50,
    flat_repeats=2,
    partitions=50,
    idle_seconds=2,
    connections=200,
)


@dataclass(frozen=True)
class Stage:
    """One product on one machine, for one scenario."""

    product: str
    sizes: Sizes
    directory: Path

    @contextlib.contextmanager
    def server(self, *, flush: str = "os", start: bool = True) -> Iterator[Server]:
        """A server on an empty directory, stopped and swept away at the end."""
        place = Path(tempfile.mkdtemp(dir=self.directory))
        server: Server
        if self.product == "kafka":
            server = KafkaServer(place, heap="1g")
        else:
            server = OttlaServer(place, {"ottla.flush": flush})
        try:
            if start:
                server.start()
            yield server
        finally:
            server.stop()
            shutil.rmtree(place, ignore_errors=True)
