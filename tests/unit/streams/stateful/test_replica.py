"""A global table's rows follow their topic, also when it is another one by now."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ottla.client.record import Record, TopicPartition
from ottla.streams import StreamsError, serde
from ottla.streams.lowering.stateful.replica import Place, Replica


class Topic:
    """A topic in memory, that gives two records at a time."""

    def __init__(self) -> None:
        self.id = "one"
        self.logs: list[list[tuple[str, str | None]]] = [[]]
        self.at: dict[TopicPartition, int] = {}
        self.stuck = False
        self.polls = 0

    def look(self) -> tuple[str, list[TopicPartition]]:
        return self.id, [TopicPartition("t", n) for n in range(len(self.logs))]

    def assign(self, places: Mapping[TopicPartition, int | None]) -> None:
        self.at = {each: offset or 0 for each, offset in places.items()}

    def reached(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.at[each] for each in partitions}

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: len(self.logs[each.partition]) for each in partitions}

    def poll(self) -> list[Record]:
        self.polls += 1
        found: list[Record] = []
        for each, offset in self.at.items():
            rows = [] if self.stuck else self.logs[each.partition][offset : offset + 2]
            for n, (key, value) in enumerate(rows):
                data = None if value is None else value.encode()
                found.append(Record("t", each.partition, offset + n, 0, key.encode(), data))
            self.at[each] += len(rows)
        return found

    def close(self) -> None:
        pass


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def replica(topic: Topic) -> Replica:
    given: Any = topic
    return Replica(Place("t", "", (), serde(str), serde(str)), given)


def rows(replica: Replica) -> dict[str, str]:
    found = replica.refresh()
    return {key: found.find(key) for key in "abcdef" if found.find(key) is not None}


def test_rows_follow_and_new_partitions_are_read(topic: Topic, replica: Replica) -> None:
    topic.logs[0] += [("a", "1"), ("b", "2"), ("a", "3")]
    assert rows(replica) == {"a": "3", "b": "2"}
    topic.logs[0].append(("b", None))
    topic.logs.append([("c", "4")])
    assert rows(replica) == {"a": "3", "c": "4"}


@pytest.mark.parametrize("more", [0, 5])
def test_a_topic_that_was_made_anew_is_read_anew(topic: Topic, replica: Replica, more: int) -> None:
    topic.logs[0] += [("a", "1"), ("b", "2"), ("c", "3")]
    rows(replica)
    topic.id = "two"
    # It may be shorter than the old one was, or longer.
    topic.logs[0] = [("d", "9"), *[("e", str(n)) for n in range(more)]]
    assert rows(replica) == {"d": "9"} | ({"e": "4"} if more else {})


def test_a_topic_that_is_shorter_than_it_was_is_read_anew(topic: Topic, replica: Replica) -> None:
    topic.logs[0] += [("a", "1"), ("b", "2"), ("c", "3")]
    rows(replica)
    del topic.logs[0][1:]
    assert rows(replica) == {"a": "1"}


def test_a_topic_that_shrinks_while_it_is_read_is_no_endless_loop(topic: Topic, replica: Replica) -> None:
    topic.logs[0] += [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")]
    give = topic.poll

    def poll() -> list[Record]:
        found = give()
        if topic.polls == 2:
            topic.id = "two"
            topic.logs[0] = [("f", "6")]
        return found

    topic.poll = poll  # type: ignore[method-assign]
    assert rows(replica) == {"f": "6"}


def test_a_topic_that_gives_nothing_is_an_error(topic: Topic, replica: Replica) -> None:
    topic.logs[0].append(("a", "1"))
    topic.stuck = True
    with pytest.raises(StreamsError, match="t cannot be read to its end"):
        replica.refresh()
    assert topic.polls == 120
