"""The acknowledgements of a share consumer.

A1  A record is acknowledged once for each delivery. Until it is sent, a later acknowledgement replaces an earlier one.
A2  Acquired offsets without a record, because of compaction or control batches, are gaps. They are acknowledged too, or
    they would be delivered again and again.
A3  Neighbouring offsets are sent together: a run of one type is one entry with two offsets and one type.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

GAP = 0
# For at least this many equal types, a separate run is shorter than one type for each offset.
_RUN_MIN = 11


class AcknowledgeType(enum.IntEnum):
    """How a share consumer acknowledges a record."""

    ACCEPT = 1  # it was processed
    RELEASE = 2  # it was not processed, and can be delivered again
    REJECT = 3  # it was not processed, and must not be delivered again
    RENEW = 4  # it is still being processed: extend its lock


class TopicIdPartition(NamedTuple):
    """A partition by the id of its topic, which outlives the name."""

    topic_id: bytes
    topic: str
    partition: int


class AckBatch(NamedTuple):
    """Acknowledgements of neighbouring offsets: one type for each, or one for all."""

    first_offset: int
    last_offset: int
    types: list[int]


Acks = dict[int, int]
"""Acknowledgements of one partition: types by offset."""


def batches_of(acks: Mapping[int, int]) -> list[AckBatch]:
    """Return the acknowledgements as they are sent."""
    return [part for run in _neighbours(sorted(acks.items())) for part in _split(run)]


def renews(acks: Iterable[Mapping[int, int]]) -> bool:
    """Say whether a lock is to be renewed among them."""
    return any(AcknowledgeType.RENEW in each.values() for each in acks)


def _neighbours(acks: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    runs: list[list[tuple[int, int]]] = []
    for each in acks:
        if runs and runs[-1][-1][0] == each[0] - 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _split(run: list[tuple[int, int]]) -> list[AckBatch]:
    """Cut out what is of one type for long enough."""
    found: list[AckBatch] = []
    mixed: list[tuple[int, int]] = []
    start = 0
    while start < len(run):
        stop = start
        while stop < len(run) and run[stop][1] == run[start][1]:
            stop += 1
        if stop - start >= _RUN_MIN:
            found += [_batch(mixed)] if mixed else []
            mixed = []
            found.append(_batch(run[start:stop]))
        else:
            mixed += run[start:stop]
        start = stop
    return [*found, _batch(mixed)] if mixed else found


def _batch(run: list[tuple[int, int]]) -> AckBatch:
    types = [kind for _, kind in run]
    return AckBatch(run[0][0], run[-1][0], types[:1] if len(set(types)) == 1 else types)
