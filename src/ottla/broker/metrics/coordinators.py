"""What is told of the coordinators of any internal topic."""

from collections.abc import Iterator
from typing import Any

from ottla.broker.coordinators import Coordinators
from ottla.broker.timing import Timing
from ottla.http.metrics.text import Family, gauge


def coordinators(prefix: str, hosted: Coordinators[Any]) -> Iterator[Family]:
    """How many partitions are coordinated here, and how long reading their logs took."""
    yield (
        gauge(prefix + "num_partitions", "Partitions of its topic coordinated here.")
        .add(hosted.loading, state="loading")
        .add(len(hosted.machines), state="active")
        .add(0, state="failed")
    )
    yield from load_times(prefix, hosted.loads)


def load_times(prefix: str, loads: Timing) -> Iterator[Family]:
    """How long it took to read logs since the page before."""
    mean, longest = loads.look()
    yield gauge(prefix + "partition_load_time_avg", "Mean time to read a log, in milliseconds.").add(mean)
    yield gauge(prefix + "partition_load_time_max", "Longest time to read a log, in milliseconds.").add(
        longest
    )
