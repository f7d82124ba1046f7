"""Random records for a topology, made from a seed: few keys, ties, records that come late, and things that are missing.

R1  One seed and one shape make the same records everywhere.
R2  The last record of each topic comes long after all others, so that whatever waits for time has been done.
R3  There is one order in which to take them. Records of one topic come by offset; between topics the earlier
    timestamp goes first, where a record counts as late as the latest before it in its topic. Topics never share such
    a time, since ties between topics are nobody's promise.
"""

import random
from dataclasses import dataclass

END_MS = 6_000
Row = tuple[str, str | None, str | None, int]


@dataclass(frozen=True)
class Topic:
    """What comes by a topic, and how often something is missing in it."""

    name: str
    keys: int = 6
    null_keys: float = 0.04
    null_values: float = 0.08


@dataclass(frozen=True)
class Shape:
    """The topics of a topology, and how time goes in them."""

    topics: tuple[Topic, ...]
    # How often a record does not move time, and how far it may be behind.
    late: float = 0.35
    late_ms_max: int = 60
    # How far apart records are, and how often they are much further.
    step_ms_max: int = 5
    leap: float = 0.01
    leap_ms_max: int = 200
    # Timestamps are multiples of this.
    unit_ms: int = 1
    # Whether all of the last topic comes before anything else.
    last_topic_first: bool = False
    # Whether a record without a key may be later than all before it.
    null_keys_move_time: bool = True


def records(shape: Shape, seed: int, count: int) -> list[Row]:
    """Return so many records in the order in which to take them."""
    chance = random.Random(seed)
    made: list[Row] = []
    topics = list(shape.topics)
    if shape.last_topic_first:
        first = topics.pop()
        made += [_row(first, at, chance) for at in range(count // 2)]
    now = -1
    while len(made) < count - len(topics):
        place = chance.randrange(len(topics))
        now = _later(shape, now, place, len(topics), chance)
        made.append(_row(topics[place], now, chance, keyed=not shape.null_keys_move_time))
        while len(made) < count - len(topics) and chance.random() < shape.late:
            back = chance.choice((0, chance.randint(0, shape.late_ms_max)))
            made.append(_row(topics[place], max(0, now - back // shape.unit_ms * shape.unit_ms), chance))
    for place, topic in enumerate(topics):
        now = _later(shape, now + END_MS, place, len(topics), chance)
        made.append((topic.name, "end", "0", now))
    return made


def _later(shape: Shape, now: int, place: int, places: int, chance: random.Random) -> int:
    """A time behind `now` that belongs to the topic at this place."""
    step = chance.randint(1, shape.step_ms_max)
    if chance.random() < shape.leap:
        step = chance.randint(1, shape.leap_ms_max)
    found = now + step
    if places > 1:
        found += (place - found) % places
    return found + -found % shape.unit_ms


def _row(topic: Topic, timestamp: int, chance: random.Random, *, keyed: bool = False) -> Row:
    null_keys = 0.0 if keyed else topic.null_keys
    key = None if chance.random() < null_keys else chr(ord("a") + chance.randrange(topic.keys))
    value = None if chance.random() < topic.null_values else str(chance.randrange(100))
    return topic.name, key, value, timestamp
