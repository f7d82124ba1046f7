"""A broker with 2,000 partitions: what it costs when idle, how fast one of them is, and how soon it is back."""

import statistics
import time

from bench import frames, raw
from bench.scenarios.warm import warm
from bench.stage import Stage
from tests.peers.connection import Connection
from tests.peers.server import Server

SETTLE_SECONDS = 3
TURNS = 5


def partitions(stage: Stage) -> dict[str, float]:
    count, sizes = stage.sizes.partitions, stage.sizes
    with stage.server() as one, stage.server() as many:
        warm(one, sizes)
        raw.make_topic(one, "only")
        warm(many, sizes)
        raw.make_topic(many, "many", partitions=count)
        _touch(many, count)
        idle = _idle_percent(many, sizes.idle_seconds)
        rates = _rates(one, many, count // 2, sizes.requests // TURNS)
        one.stop()
        resident = many.resident_bytes()
        began = time.perf_counter()
        many.stop()
        stopped = time.perf_counter() - began
        began = time.perf_counter()
        many.start(wait=False)
        raw.until_acknowledged(many, "many")
        restarted = time.perf_counter() - began
    return {
        **rates,
        "partitions.idle_percent": idle,
        "partitions.stop_s": stopped,
        "partitions.restart_s": restarted,
        "partitions.resident_mb": resident / 1e6,
    }


def _rates(one: Server, many: Server, partition: int, requests: int) -> dict[str, float]:
    """Both brokers by turns, the other one idle meanwhile, so that what disturbs the one disturbs the other."""
    alone, among = [], []
    for _ in range(TURNS):
        load = raw.produce(one, "only", requests=requests, window=64)
        alone.append(requests / load.seconds)
        load = raw.produce(many, "many", partition=partition, requests=requests, window=64)
        among.append(requests / load.seconds)
    return {
        "partitions.one_per_s": statistics.median(alone),
        "partitions.many_per_s": statistics.median(among),
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
