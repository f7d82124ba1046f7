"""A broker with 2,000 partitions: what it costs when idle, how fast one of them is, and how soon it is back."""

import time

from bench import frames, raw
from bench.scenarios.warm import warm
from bench.stage import Stage
from tests.peers.connection import Connection
from tests.peers.server import Server

SETTLE_SECONDS = 3


def partitions(stage: Stage) -> dict[str, float]:
    count, sizes = stage.sizes.partitions, stage.sizes
    with stage.server() as server:
        warm(server, sizes)
        raw.make_topic(server, "one")
        one = raw.produce(server, "one", requests=sizes.requests, window=64)
    with stage.server() as server:
        warm(server, sizes)
        raw.make_topic(server, "many", partitions=count)
        _touch(server, count)
        idle = _idle_percent(server, sizes.idle_seconds)
        among_many = raw.produce(server, "many", partition=count // 2, requests=sizes.requests, window=64)
        resident = server.resident_bytes()
        began = time.perf_counter()
        server.stop()
        stopped = time.perf_counter() - began
        began = time.perf_counter()
        server.start(wait=False)
        raw.until_acknowledged(server, "many")
        restarted = time.perf_counter() - began
    return {
        "partitions.one_per_s": sizes.requests / one.seconds,
        "partitions.many_per_s": sizes.requests / among_many.seconds,
        "partitions.idle_percent": idle,
        "partitions.stop_s": stopped,
        "partitions.restart_s": restarted,
        "partitions.resident_mb": resident / 1e6,
    }


def _touch(server: Server, count: int) -> None:
    """Put a record into every partition, so that each has files worth the name."""
    with Connection(server.port, seconds_max=120) as line:
        for start in range(0, count, 100):
            numbers = range(start, min(start + 100, count))
            for partition in numbers:
                line.send_bytes(frames.produce_frame("many", partition, records=1, size_bytes=100, acks=1))
            for _ in numbers:
                line.receive_frame()


def _idle_percent(server: Server, seconds: int) -> float:
    time.sleep(SETTLE_SECONDS)
    cpu, began = server.cpu_seconds(), time.perf_counter()
    time.sleep(seconds)
    return (server.cpu_seconds() - cpu) / (time.perf_counter() - began) * 100
