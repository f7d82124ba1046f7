"""Rows that are written before Spark has called their tasks done are there once, whole, and only if it has."""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.client.cluster import Cluster
from ottla.client.errors import TopicUnknown
from ottla.client.producer.accumulator import Accumulator
from ottla.spark.connection import connected
from ottla.spark.sink import early, session, transaction
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.session import sessions_of
from ottla.world.mailbox import post
from tests.peers.deadline import eventually
from tests.peers.server import Server
from tests.spark.sink_stage import Query, Topics
from tests.spark.test_sink_transactions import elsewhere, numbers, server, topic, topics

__all__ = ["server", "topic", "topics"]


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Spark's local directory, whose path is short enough for a socket."""
    made = tempfile.mkdtemp(prefix="ottla-")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", made)
    yield made
    shutil.rmtree(made)


class Observed(Query):
    """A query of which one sees what was left for `commit` to write, and what was begun early."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.topic = topic
        self.written_late: list[int] = []
        original = transaction._write

        async def watched(carrier: Any, connection: Any, undertaking: Any) -> None:
            self.written_late.append(undertaking.marker.batch_id)
            await original(carrier, connection, undertaking)

        monkeypatch.setattr(transaction, "_write", watched)

    @property
    def begun(self) -> "early.Early | None":
        options = SinkOptions.of(self.options)
        kept = sessions_of(connected(options.settings()))._kept
        return next(iter(kept.values())).early if kept else None

    def told(self, batch_id: int) -> int:
        """Of how many parts of a batch it is known what they have."""
        begun = self.begun
        return 0 if begun is None or begun.marker.batch_id != batch_id else begun._next

    def early_batch(self, batch_id: int, *parts: list[str]) -> None:
        """A batch whose tasks are all told of before it is committed."""
        messages = self.run(batch_id, *parts)
        eventually(lambda: self.told(batch_id) == len(parts))
        self.commit(batch_id, messages)


@pytest.fixture
def query(server: Server, topic: str, local: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Observed]:
    with elsewhere():  # so that nothing is kept of another test
        yield Observed(monkeypatch, server.bootstrap, topic)


@pytest.fixture
def lone(
    query: Observed, topics: Topics, topic_name: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> Observed:
    """The same on a topic of one partition, where order can be seen."""
    return Observed(monkeypatch, server.bootstrap, topics.make(f"{topic_name}-alone", 1))


def is_there(topics: Topics, topic: str, *values: str) -> bool:
    return set(values) <= set(topics.read(topic, committed=False))


def test_rows_are_there_before_the_commit_and_seen_after_it(
    query: Observed, topics: Topics, topic: str
) -> None:
    query.batch(0, numbers(5))
    assert query.written_late == [0], "nobody was there to be told"
    for batch_id in range(1, 4):
        new = [f"{batch_id}-{each}" for each in range(9)]
        messages = query.run(batch_id, new[:5], [], new[5:])
        eventually(lambda new=new: is_there(topics, topic, *new))
        assert not set(new) & set(topics.read(topic)), "not before it is decided"
        query.commit(batch_id, messages)
        assert set(new) <= set(topics.read(topic))
    assert query.written_late == [0]
    assert len(topics.read(topic, committed=False)) == 5 + 27


def test_the_marker_is_the_same(query: Observed, topics: Topics, topic: str, server: Server) -> None:
    query.batch(0, numbers(5))
    query.early_batch(1, numbers(2))
    marks = topics.marks(f"ottla-{query.query_id}")
    assert {text for _, text in marks.values()} >= {f"ottla:{query.query_id}:1"}
    assert query.written_late == [0]
    query.batch(1, numbers(2))
    assert sorted(topics.read(topic)) == sorted([*numbers(5), *numbers(2)]), "a batch again is known again"


@pytest.mark.parametrize("accepted", [0, 1, 2])
def test_a_task_that_was_run_three_times(query: Observed, topics: Topics, topic: str, accepted: int) -> None:
    query.batch(0, ["first"])
    planned = query.writer()
    attempts = [query.attempt(0, [f"try-{number}"], 1, planned) for number in range(3)]
    eventually(lambda: is_there(topics, topic, "try-0"))
    query.commit(1, [attempts[accepted]])
    assert topics.read(topic) in (
        ["first", f"try-{accepted}"],
        [f"try-{accepted}", "first"],
    )
    assert query.written_late == [0, 1]
    query.batch(2, ["next"])
    assert sorted(topics.read(topic)) == sorted(["first", f"try-{accepted}", "next"])
    assert query.written_late == [0, 1, 2], "once bitten, twice shy"


def test_a_task_that_nobody_was_told_of(
    query: Observed, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.batch(0, ["first"])
    planned = query.writer()
    told = query.attempt(0, ["told"], 1, planned)
    with monkeypatch.context() as patch:
        patch.setattr(early, "post", lambda *_: False)
        untold = query.attempt(1, ["untold"], 1, planned)
    query.commit(1, [told, untold])
    assert sorted(topics.read(topic)) == ["first", "told", "untold"]
    assert query.written_late == [0, 1]


def test_another_attempt_than_was_told_of(
    query: Observed, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.batch(0, ["first"])
    planned = query.writer()
    query.attempt(0, ["told"], 1, planned)
    eventually(lambda: is_there(topics, topic, "told"))
    with monkeypatch.context() as patch:
        patch.setattr(early, "post", lambda *_: False)
        accepted = query.attempt(0, ["accepted"], 1, planned)
    query.commit(1, [accepted])
    assert sorted(topics.read(topic)) == ["accepted", "first"]


def test_a_batch_that_failed_leaves_nothing_open(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    first, _ = query.run(1, ["half"], ["other"])
    eventually(lambda: is_there(topics, topic, "half", "other"))
    query.writer().abort([first, None], 1)
    assert query.begun is None
    topics.settle()
    query.early_batch(1, ["half"], ["whole"])
    assert sorted(topics.read(topic)) == ["first", "half", "whole"]
    assert query.written_late == [0]


def test_what_nobody_asks_for_is_aborted(
    query: Observed, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "_PATIENCE_S", 0.05)
    query.batch(0, ["first"])
    messages = query.run(1, ["late"])
    eventually(
        lambda: query.begun is not None and query.begun._abort is not None and query.begun._abort.done()
    )
    assert topics.read(topic) == ["first"]
    query.commit(1, messages)
    assert sorted(topics.read(topic)) == ["first", "late"]
    assert query.written_late == [0, 1]


def test_the_same_batch_run_again_in_the_same_process(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    query.run(1, ["again"])
    query.commit(1, query.run(1, ["again"]))
    assert sorted(topics.read(topic)) == ["again", "first"]
    assert query.written_late == [0, 1]


def test_rows_of_another_batch_than_is_committed(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    query.run(1, ["never committed"])
    query.batch(2, ["second"])
    assert sorted(topics.read(topic)) == ["first", "second"]


def test_a_large_batch_is_not_begun_early(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    messages = query.run(1, ["x" * 1000] * 100, ["small"])
    eventually(lambda: query.begun is not None)
    assert not query.begun.is_begun
    query.commit(1, messages)
    assert len(topics.read(topic, committed=False)) == 102
    query.early_batch(2, ["next"])
    assert query.written_late == [0, 1]


def test_a_batch_of_which_a_part_is_large_is_written_once_all_the_same(
    query: Observed, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_TURNS_LATE", 2)
    query.batch(0, ["first"])
    planned = query.writer()
    small = query.attempt(0, ["small"], 1, planned)
    eventually(lambda: query.told(1) == 1)
    large = query.attempt(1, ["x" * 1000] * 100, 1, planned)
    query.commit(1, [small, large])
    assert len(topics.read(topic)) == 102
    query.batch(2, ["two"])
    query.early_batch(3, ["three"])
    assert query.written_late == [0, 1, 2]
    assert {"small", "two", "three"} <= set(topics.read(topic))


def test_rows_are_in_the_order_of_their_tasks(lone: Observed, topics: Topics) -> None:
    one, alone = lone, lone.topic
    one.batch(0, ["first"])
    for batch_id, order in enumerate(itertools.permutations(range(4)), start=1):
        planned = one.writer()
        rows = [
            [f"{batch_id}-{part}-{number}" for number in range(3)] if part != 1 else [] for part in range(4)
        ]
        messages = {part: one.attempt(part, rows[part], batch_id, planned) for part in order}
        eventually(lambda batch_id=batch_id: one.told(batch_id) == 4)
        one.commit(batch_id, [messages[part] for part in range(4)])
        assert topics.read(alone)[-9:] == rows[0] + rows[2] + rows[3]
    assert one.written_late == [0]


def test_a_task_without_rows_alone(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    query.batch(1, [], [])
    query.early_batch(2, [], ["second"])
    assert sorted(topics.read(topic)) == ["first", "second"]
    assert query.written_late == [0, 1], "a batch without rows has a marker all the same, and nothing to begin with"


def test_another_driver_takes_over(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    mine = query.run(1, ["row"])
    eventually(lambda: is_there(topics, topic, "row"))
    with elsewhere():
        query.batch(1, ["row"])
    assert sorted(topics.read(topic)) == ["first", "row"]
    query.commit(1, mine)
    query.batch(2, ["next"])
    assert sorted(topics.read(topic)) == ["first", "next", "row"]


def test_another_driver_was_there_before(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    with elsewhere():
        query.batch(1, ["row"])
    query.batch(1, ["row"])
    assert sorted(topics.read(topic)) == ["first", "row"]


def test_the_broker_restarts_before_the_end(
    server: Server, query: Observed, topics: Topics, topic: str
) -> None:
    query.batch(0, ["first"])
    messages = query.run(1, ["row"])
    eventually(lambda: is_there(topics, topic, "row"))
    server.kill()
    server.start()
    query.commit(1, messages)
    assert sorted(topics.read(topic)) == ["first", "row"]


def test_the_broker_is_away_meanwhile(server: Server, query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    topics.settle()  # Apache Kafka forgets its markers otherwise: see ADR 0032
    planned = query.writer()
    server.kill()
    message = query.attempt(0, ["row"], 1, planned)
    server.start()
    query.commit(1, [message])
    assert sorted(topics.read(topic)) == ["first", "row"]


def test_rows_that_cannot_be_written(
    query: Observed, topics: Topics, topic_name: str, server: Server
) -> None:
    small = topics.make(f"{topic_name}-small", 1, max_message_bytes="200")
    one = Query(server.bootstrap, small)
    one.batch(0, ["first"])
    with pytest.raises(Exception, match="max.message.bytes|too large|larger"):
        one.batch(1, ["x" * 1000])
    one.batch(1, ["fits"])
    assert sorted(topics.read(small)) == ["first", "fits"]


def test_letters_of_nonsense_are_nobodys_business(query: Observed, topics: Topics, topic: str) -> None:
    query.batch(0, ["first"])
    path = early.box_of(f"ottla-{query.query_id}")
    assert path is not None
    for letter in (b"", b"\0", b"\0\0\0\2[]", b"\0\0\0\7garbage", bytes(1000)):
        assert post(path, letter)
    query.early_batch(1, ["next"])
    assert sorted(topics.read(topic)) == ["first", "next"]
    assert query.written_late == [0]


def test_nobody_overtakes_whoever_waits_for_a_topic(
    lone: Observed, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows have to ask where their topic is; those behind them would know."""
    one, alone = lone, lone.topic
    one.batch(0, ["first"])
    original, asked = Accumulator.append_encoded, []

    def append_encoded(accumulator: Accumulator, *given: Any) -> Any:
        asked.append(given)
        if len(asked) == 1:
            raise TopicUnknown(alone)
        return original(accumulator, *given)

    find = Cluster.topic

    async def found_slowly(cluster: Cluster, *given: Any) -> Any:
        await asyncio.sleep(0.1)
        return await find(cluster, *given)

    monkeypatch.setattr(Accumulator, "append_encoded", append_encoded)
    monkeypatch.setattr(Cluster, "topic", found_slowly)
    one.early_batch(1, ["a"], ["b"], ["c"])
    assert topics.read(alone) == ["first", "a", "b", "c"]
    assert one.written_late == [0]
