"""Which partition each row goes to: the one it names, else by its key, else where its neighbours go.

P1  With a key the choice is that of every client of Kafka's kind.
P2  Rows without key and partition stay together in runs of at least a batch of Kafka's default size, and no more runs
    than partitions; the next run goes to the next partition that has a leader, the first to one drawn by chance.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.client.errors import TopicUnknown
from ottla.spark.sink.hashing import partitions_of
from ottla.wire.columns_encoding import lengths, places
from ottla.world.entropy import Entropy

Numbers = NDArray[np.int64]

_OPEN = -1
_RUN_BYTES = 16_384


class Target(NamedTuple):
    """A topic that rows go to."""

    name: str
    partition_count: int
    available: tuple[int, ...]


class Partitioning:
    """How one task chooses partitions."""

    def __init__(self, chance: Entropy, *, ignores_keys: bool = False) -> None:
        self._chance = chance
        self._ignores_keys = ignores_keys
        self._turns: dict[str, int] = {}

    def choose(
        self, target: Target, partition: pa.Array | None, key: pa.Array | None, sizes: Numbers
    ) -> Numbers:
        """Return the partition of each row; TopicUnknown when a row names one that is not there."""
        chosen = np.full(len(sizes), _OPEN, np.int64)
        if partition is not None:
            given = np.asarray(partition.fill_null(_OPEN)).astype(np.int64)
            wrong = given[
                (given >= target.partition_count) | ((given < 0) & np.asarray(partition.is_valid()))
            ]
            if len(wrong):
                raise TopicUnknown(
                    f"a row names partition {wrong[0]} of topic {target.name}, which has {target.partition_count}",
                    hint="leave the column partition out, or null, to have it chosen",
                )
            chosen = given
        if key is not None and not self._ignores_keys:
            hashed = np.flatnonzero((chosen == _OPEN) & np.asarray(key.is_valid()))
            if len(hashed):
                chosen[hashed] = _by_key(key, hashed, target.partition_count)
        free = np.flatnonzero(chosen == _OPEN)
        if len(free):
            chosen[free] = self._runs(target, sizes[free])
        return chosen

    def _runs(self, target: Target, sizes: Numbers) -> Numbers:
        among = np.array(target.available or range(target.partition_count), np.int64)
        ends = np.cumsum(sizes)
        total = int(ends[-1])
        count = max(1, min(len(among), total // _RUN_BYTES))
        turn = self._turns.get(target.name)
        if turn is None:
            turn = int(self._chance.random() * len(among))
        self._turns[target.name] = turn + count
        return among[(turn + (ends - 1) * count // total) % len(among)]


def _by_key(key: pa.Array, who: Numbers, count: int) -> Numbers:
    data = key.buffers()[2]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return partitions_of(raw, places(key)[:-1][who], lengths(key)[who], count)
