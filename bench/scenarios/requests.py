"""Pipelined requests of one record each: how many a second, and what each costs the server."""

from bench import raw, rdkafka
from bench.scenarios.warm import warm
from bench.stage import Stage

SIZE_BYTES = 100


def requests(stage: Stage) -> dict[str, float]:
    count = stage.sizes.requests
    with stage.server() as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "requests")
        probe = min(count, 1_000)
        made = rdkafka.requests_for(
            server, "requests", rdkafka.ONE_A_REQUEST, messages=probe, size_bytes=SIZE_BYTES
        )
        assert made == probe, f"librdkafka made {made} requests of {probe} messages"
        by_client = rdkafka.produce(
            server, "requests", rdkafka.ONE_A_REQUEST, messages=count, size_bytes=SIZE_BYTES
        )
        by_hand = raw.produce(server, "requests", requests=count, window=64, size_bytes=SIZE_BYTES)
        many = raw.produce(
            server, "requests", requests=count, window=64, size_bytes=SIZE_BYTES, connections=8
        )
    return {
        "requests.per_s": count / by_client.seconds,
        "requests.cpu_us": by_client.cpu_seconds / count * 1e6,
        "requests.raw_per_s": count / by_hand.seconds,
        "requests.raw_cpu_us": by_hand.cpu_seconds / count * 1e6,
        "requests.raw8_per_s": count / many.seconds,
        "requests.raw8_cpu_us": many.cpu_seconds / count * 1e6,
    }
