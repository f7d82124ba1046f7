"""Where a read begins or ends, as an option says it; a cluster can then be asked which offsets that means.

An offset below zero stands for a place: -1 for the end and -2 for the beginning, as in Spark's own source, and -3 for
where the group has come to, which is written as `group`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.client.record import TopicPartition
from ottla.spark.source.refusal import OptionError

LATEST, EARLIEST, GROUP = -1, -2, -3
_WORDS = {"latest": LATEST, "earliest": EARLIEST, "group": GROUP}
_OFFSETS = '{"orders": {"0": 23, "1": -1}, "clicks": {"0": -2}}, where -1 is the end and -2 the beginning'
_TIMES = '{"orders": {"0": 1700000000000, "1": 1700000000000}}, in milliseconds since 1970'


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same place in every partition: LATEST, EARLIEST or GROUP."""

    place: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset or a place in each partition."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record from a moment on; where none is that young, the end if `or_latest`, else an error."""

    time_ms: int
    or_latest: bool


@dataclass(frozen=True, slots=True)
class AtTimes:
    """A moment of its own for each partition."""

    times_ms: Mapping[TopicPartition, int]
    or_latest: bool


Whence: TypeAlias = Everywhere | AtOffsets | AtTime | AtTimes


def places(whence: Whence) -> set[int]:
    """Return the places that are named, wherever."""
    if isinstance(whence, Everywhere):
        return {whence.place}
    if isinstance(whence, AtOffsets):
        return {offset for offset in whence.offsets.values() if offset < 0}
    return {LATEST} if whence.or_latest else set()


def at_offsets(option: str, text: str) -> Whence:
    """Read `startingOffsets` or `endingOffsets`: a word, or JSON."""
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        return Everywhere(word)
    found = _by_partition(option, text, _OFFSETS, words=True)
    wrong = next((offset for offset in found.values() if offset < GROUP), None)
    if wrong is not None:
        raise OptionError(
            f"option {option} has the offset {wrong}, which cannot be", hint=f"write {_OFFSETS}"
        )
    return AtOffsets(found)


def at_times(option: str, text: str, or_latest: bool) -> AtTimes:
    """Read `startingOffsetsByTimestamp` or `endingOffsetsByTimestamp`: JSON."""
    return AtTimes(_by_partition(option, text, _TIMES), or_latest)


def at_time(option: str, text: str, or_latest: bool) -> AtTime:
    """Read `startingTimestamp` or `endingTimestamp`: one number for all partitions."""
    try:
        return AtTime(int(text.strip()), or_latest)
    except ValueError:
        raise OptionError(
            f"option {option} is {text!r}, which is no time",
            hint="give milliseconds since 1970, as in 1700000000000",
        ) from None


def _by_partition(option: str, text: str, example: str, *, words: bool = False) -> dict[TopicPartition, int]:
    try:
        given: Any = json.loads(text)
        return {
            TopicPartition(topic, _partition(number)): _number(value, words)
            for topic, values in given.items()
            for number, value in values.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise OptionError(f"option {option} cannot be read: {text!r}", hint=f"write {example}") from None


def _partition(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _number(value: Any, words: bool) -> int:
    if words and isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if type(value) is not int:
        raise TypeError
    return value


def check_order(start: Whence, end: Whence) -> None:
    """Refuse two ends that name different partitions, or an end that lies before the start."""
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        begins, ends, what = start.offsets, end.offsets, "offset"
    elif isinstance(start, AtTimes) and isinstance(end, AtTimes):
        begins, ends, what = start.times_ms, end.times_ms, "timestamp"
    else:
        return
    if begins.keys() != ends.keys():
        odd = sorted(begins.keys() ^ ends.keys())
        raise OptionError(
            f"the starting and ending {what}s are of different partitions: {', '.join(map(str, odd))}",
            hint="name the same partitions in both",
        )
    for partition, begin in begins.items():
        if 0 <= ends[partition] < begin:
            raise OptionError(
                f"the starting {what} {begin} of {partition} lies behind its ending {what} {ends[partition]}",
                hint="exchange the two",
            )
