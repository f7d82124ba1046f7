"""Work before the work: a JVM that has not compiled its hot path yet is not what anyone runs."""

from bench import raw, rdkafka
from bench.stage import Sizes
from tests.peers.server import Server


def warm(server: Server, sizes: Sizes) -> None:
    """Put one-record requests and big batches through the server, and read them back."""
    raw.make_topic(server, "warm")
    raw.produce(server, "warm", requests=sizes.warm_requests, window=64)
    raw.produce(server, "warm", requests=sizes.warm_megabytes, window=4, records=1_000, size_bytes=1_000)
    end_offset = sizes.warm_requests + 1 + (sizes.warm_megabytes + 1) * 1_000
    raw.fetch(server, "warm", start_offset=0, stop_offset=end_offset)
    # A consumer with a group's name makes Kafka create its offsets topic, which is not to happen under measurement.
    rdkafka.consume(server, "warm", messages=sizes.warm_requests)
