"""Reading what was just written, from the start of the topic: megabytes a second, and their cost to the server."""

from bench import raw, rdkafka
from bench.scenarios.warm import warm
from bench.stage import Stage

RECORD_BYTES = 1_000
RECORDS_A_BATCH = 100  # batches of 100 KB, several to a fetch
SMALL_BYTES = 100
SMALL_A_BATCH = 1_000


def consume(stage: Stage) -> dict[str, float]:
    megabytes = stage.sizes.megabytes
    with stage.server() as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "consume")
        batches = megabytes * 1_000_000 // (RECORD_BYTES * RECORDS_A_BATCH)
        raw.produce(
            server, "consume", requests=batches, window=16, records=RECORDS_A_BATCH, size_bytes=RECORD_BYTES
        )
        records = batches * RECORDS_A_BATCH
        by_client = rdkafka.consume(server, "consume", messages=records)
        by_hand = raw.fetch(server, "consume", start_offset=0, stop_offset=records)
        small = megabytes * 1_000_000 // 1_000
        raw.make_topic(server, "small")
        raw.produce(
            server,
            "small",
            requests=small // SMALL_A_BATCH,
            window=16,
            records=SMALL_A_BATCH,
            size_bytes=SMALL_BYTES,
        )
        of_small = rdkafka.consume(server, "small", messages=small)
    return {
        "consume.mb_per_s": megabytes / by_client.seconds,
        "consume.cpu_ms_per_mb": by_client.cpu_seconds / megabytes * 1e3,
        "consume.small_per_s": small / of_small.seconds,
        "consume.raw_mb_per_s": megabytes / by_hand.seconds,
        "consume.raw_cpu_ms_per_mb": by_hand.cpu_seconds / megabytes * 1e3,
    }
