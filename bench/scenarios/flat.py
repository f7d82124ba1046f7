"""Rates must not depend on how much is in the log: a topic of 20 GB beside fresh ones of 100 MB, by turns.

The ratio is that of each turn, for what a machine does with its memory and its disk changes by the minute: the same
produce took four times as long in one round as in another.
"""

import os
import statistics
from collections import defaultdict

from bench import raw
from bench.scenarios.warm import warm
from bench.stage import Stage
from tests.peers.connection import Connection
from tests.peers.server import Server

RECORDS_A_BATCH = 1_000
RECORD_BYTES = 1_000
MEASURED_MEGABYTES = 100
FETCH_PASSES = 3
KINDS = ("requests_per_s", "produce_mb_per_s", "fetch_mb_per_s")


def flat(stage: Stage) -> dict[str, float]:
    sizes, figures = stage.sizes, defaultdict[str, list[float]](list)
    with stage.server() as server:
        warm(server, sizes)
        _fill(server, "large", sizes.flat_large_megabytes)
        for turn in range(sizes.flat_repeats):
            _fill(server, f"small-{turn}", sizes.flat_small_megabytes)
            os.sync()  # what was filled must not be written back while rates are taken
            pair = [("small", f"small-{turn}"), ("large", "large")]
            for kind, topic in pair if turn % 2 else reversed(pair):
                for name, rate in _rates(server, topic, sizes.requests // 2).items():
                    figures[f"flat.{kind}_{name}"].append(rate)
    for name in KINDS:
        unit = name.partition("_")[0]
        pairs = zip(figures[f"flat.large_{name}"], figures[f"flat.small_{name}"], strict=True)
        figures[f"flat.{unit}_ratio"] = [large / small for large, small in pairs]
    return {name: statistics.median(rates) for name, rates in figures.items()}


def _fill(server: Server, topic: str, megabytes: int) -> None:
    raw.make_topic(server, topic)
    raw.produce(server, topic, requests=megabytes, window=4, records=RECORDS_A_BATCH, size_bytes=RECORD_BYTES)


def _rates(server: Server, topic: str, requests: int) -> dict[str, float]:
    small = raw.produce(server, topic, requests=requests, window=64)
    with Connection(server.port) as line:
        end_offset = raw.end_offset(line, topic) or 0
    big = raw.produce(
        server,
        topic,
        requests=MEASURED_MEGABYTES,
        window=4,
        records=RECORDS_A_BATCH,
        size_bytes=RECORD_BYTES,
    )
    stop_offset = end_offset + MEASURED_MEGABYTES * RECORDS_A_BATCH
    passes = [
        raw.fetch(server, topic, start_offset=end_offset, stop_offset=stop_offset)
        for _ in range(FETCH_PASSES)
    ]
    return {
        "requests_per_s": requests / small.seconds,
        "produce_mb_per_s": MEASURED_MEGABYTES / big.seconds,
        "fetch_mb_per_s": MEASURED_MEGABYTES * FETCH_PASSES / sum(each.seconds for each in passes),
    }
