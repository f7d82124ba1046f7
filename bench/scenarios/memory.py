"""Memory that is resident once a server has worked: requests small and big, and a reader of them all."""

from bench import raw, rdkafka
from bench.scenarios.warm import warm
from bench.stage import Stage
from tests.peers import process


def memory(stage: Stage) -> dict[str, float]:
    megabytes = stage.sizes.megabytes
    with stage.server() as server:
        idle = server.resident_bytes()
        warm(server, stage.sizes)
        raw.make_topic(server, "memory")
        messages = megabytes * 1_000
        rdkafka.produce(server, "memory", rdkafka.BIG_BATCHES, messages=messages, size_bytes=1_000)
        rdkafka.consume(server, "memory", messages=messages)
        return {
            "memory.started_mb": idle / 1e6,
            "memory.worked_mb": server.resident_bytes() / 1e6,
            "memory.most_mb": process.resident_bytes_max(server.pid) / 1e6,
        }
