"""Records of 1 KB in batches of up to 1 MB: megabytes a second, and what a megabyte costs the server."""

from bench import raw, rdkafka
from bench.scenarios.warm import warm
from bench.stage import Stage

RECORD_BYTES = 1_000
RECORDS_A_BATCH = 1_000


def big_batches(stage: Stage) -> dict[str, float]:
    return {f"big_batches.{name}": figure for name, figure in _measure(stage, "os").items()}


def durable(stage: Stage) -> dict[str, float]:
    """The same with every acknowledged record on disk; Kafka, as ever, without fsync."""
    return {f"durable.{name}": figure for name, figure in _measure(stage, "ack").items()}


def _measure(stage: Stage, flush: str) -> dict[str, float]:
    megabytes = stage.sizes.megabytes
    with stage.server(flush=flush) as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "client")
        messages = megabytes * 1_000_000 // RECORD_BYTES
        by_client = rdkafka.produce(
            server, "client", rdkafka.BIG_BATCHES, messages=messages, size_bytes=RECORD_BYTES
        )
        raw.make_topic(server, "raw")
        by_hand = raw.produce(
            server,
            "raw",
            requests=megabytes,
            window=4,
            records=RECORDS_A_BATCH,
            size_bytes=RECORD_BYTES,
            acks=-1,
        )
    return {
        "mb_per_s": megabytes / by_client.seconds,
        "cpu_ms_per_mb": by_client.cpu_seconds / megabytes * 1e3,
        "raw_mb_per_s": megabytes / by_hand.seconds,
        "raw_cpu_ms_per_mb": by_hand.cpu_seconds / megabytes * 1e3,
    }
