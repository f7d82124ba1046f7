"""Each micro-batch is written once and whole, whatever fails: on Ottla and, under `make compat`, on Apache Kafka.

Spark is played by `sink_stage`, so that whatever may fail can be made to fail at the worst moment.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.client.blocking import Admin
from ottla.client.errors import Fenced, Malformed, RecordTooLarge
from ottla.client.producer.transaction_client import TransactionClient
from ottla.spark import connection
from ottla.spark.sink.carrier import Carrier
from ottla.spark.sink.refusal import NotWritten, PerhapsWritten
from ottla.world.loop_thread import LoopThread
from tests.compat.absence import need_kafka
from tests.compat.chosen import SERVERS
from tests.peers.server import Server
from tests.spark.sink_stage import Job, Killed, Query, Topics, rows, task

SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
BOTH = [
    pytest.param(name, marks=[pytest.mark.long] * (name == "kafka")) for name in sorted(SERVERS, reverse=True)
]


@pytest.fixture(scope="module", params=BOTH)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param == "kafka":
        need_kafka()
    with SERVERS[request.param](tmp_path_factory.mktemp("server"), SETTINGS) as running:
        yield running


@pytest.fixture
def topics(server: Server) -> Topics:
    if server.process is None:
        server.start()
    return Topics(server.bootstrap)


@pytest.fixture
def topic(topics: Topics, topic_name: str) -> str:
    return topics.make(topic_name, 3)


@pytest.fixture
def query(server: Server, topic: str) -> Query:
    return Query(server.bootstrap, topic)


class Moment:
    """Where something happens in the middle of a commit: before or after a call of the carrier, the first time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
        self._monkeypatch = monkeypatch
        self._call = call
        self.passed = 0

    def before(self, happens: Callable[[], Awaitable[None]]) -> None:
        self._patch(happens, None)

    def after(self, happens: Callable[[], Awaitable[None]]) -> None:
        self._patch(None, happens)

    def _patch(self, before: Any, after: Any) -> None:
        original = getattr(Carrier, self._call)

        async def patched(carrier: Carrier, *arguments: Any) -> Any:
            self.passed += 1
            if before is not None and self.passed == 1:
                await before()
            result = await original(carrier, *arguments)
            if after is not None and self.passed == 1:
                await after()
            return result

        self._monkeypatch.setattr(Carrier, self._call, patched)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Moment]:
    return lambda call: Moment(monkeypatch, call)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Have what is begun inside connected on a loop of its own, as if in another process."""
    kept = connection._pool
    connection._pool = connection.Pool(LoopThread(connection.uvloop.new_event_loop))
    try:
        yield
    finally:
        connection._pool = kept


async def die() -> None:
    raise Killed


def numbers(*bounds: int) -> list[str]:
    return [str(number) for number in range(*bounds)]


def test_batches_one_after_another(query: Query, topics: Topics, topic: str) -> None:
    query.batch(0, numbers(0, 5), numbers(5, 10))
    query.batch(1, numbers(10, 15), [], numbers(15, 20))
    query.batch(2, [], [])
    query.batch(3, numbers(20, 25))
    assert sorted(map(int, topics.read(topic))) == list(range(25))


def test_a_batch_committed_twice(query: Query, topics: Topics, topic: str) -> None:
    messages = query.run(0, numbers(5), numbers(5, 9))
    query.commit(0, messages)
    query.commit(0, messages)
    assert sorted(topics.read(topic)) == numbers(9)


def test_a_batch_again_in_other_parts(query: Query, topics: Topics, topic: str) -> None:
    query.batch(0, numbers(5), numbers(5, 9))
    query.batch(1, ["x"])
    query.batch(1, [], ["x"], [])
    query.batch(0, numbers(9))
    query.batch(2, ["y"])
    assert sorted(topics.read(topic)) == [*numbers(9), "x", "y"]


def test_the_marker_stands_at_the_end_of_the_rows(
    query: Query, topics: Topics, server: Server, topic_name: str
) -> None:
    topic = topics.make(f"{topic_name}-one")
    query = Query(server.bootstrap, topic)
    query.batch(0, numbers(5))
    query.batch(1, numbers(2))
    # Each transaction has a mark of its own behind its rows.
    assert topics.marks(f"ottla-{query.query_id}") == {(topic, 0): (9, f"ottla:{query.query_id}:1")}


def test_another_query_under_the_same_name(server: Server, topics: Topics, topic: str) -> None:
    Query(server.bootstrap, topic, "one", transactionalId=topic, missingMarker="write:7").batch(7, ["a"])
    Query(server.bootstrap, topic, "two", transactionalId=topic).batch(0, ["b"])
    Query(server.bootstrap, topic, "two", transactionalId=topic).batch(0, ["b"])
    assert sorted(topics.read(topic)) == ["a", "b"]


def test_the_driver_dies_before_the_end(
    query: Query, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    messages = query.run(0, numbers(5), numbers(5, 9))
    moment("commit").before(die)
    with pytest.raises(Killed):
        query.commit(0, messages)
    assert topics.read(topic) == []
    assert sorted(topics.read(topic, committed=False)) == numbers(9), "it was in the middle of it"
    query.batch(0, numbers(9))
    assert sorted(topics.read(topic)) == numbers(9)


def test_the_driver_dies_after_the_end(
    query: Query, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    messages = query.run(0, numbers(5), numbers(5, 9))
    moment("commit").after(die)
    with pytest.raises(Killed):
        query.commit(0, messages)
    # Spark, were it still there, would abort what it could not commit.
    query.writer().abort(messages, 0)
    assert sorted(topics.read(topic)) == numbers(9)
    query.batch(0, numbers(9))
    assert sorted(topics.read(topic)) == numbers(9)


@pytest.mark.parametrize("call", ["carry", "offsets"])
def test_the_driver_dies_on_the_way(
    query: Query, topics: Topics, topic: str, moment: Callable[[str], Moment], call: str
) -> None:
    moment(call).after(die)
    with pytest.raises(Killed):
        query.batch(0, numbers(5))
    query.batch(0, numbers(5))
    assert sorted(topics.read(topic)) == numbers(5)


def test_a_job_of_which_a_task_failed(query: Query, topics: Topics, topic: str) -> None:
    first, _ = query.run(0, numbers(5), numbers(5, 9))
    query.writer().abort([first, None], 0)
    assert topics.read(topic) == []
    assert topics.read(topic, committed=False) == [], "not even a transaction was begun"
    query.batch(0, numbers(9))
    assert sorted(topics.read(topic)) == numbers(9)


def test_a_task_that_was_run_three_times(query: Query, topics: Topics, topic: str) -> None:
    planned = query.writer()
    attempts = [query.attempt(0, numbers(5), 0, planned) for _ in range(3)]
    query.commit(0, [attempts[1], query.attempt(1, numbers(5, 9), 0, planned)])
    assert sorted(topics.read(topic)) == numbers(9)


def test_two_drivers_of_one_query(
    server: Server, query: Query, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    """The second comes when the first has written its rows, and is through before the first goes on."""
    mine, others = query.run(0, numbers(5)), query.run(0, numbers(5))
    here = moment("offsets")

    async def other() -> None:
        from asyncio import to_thread

        with elsewhere():
            await to_thread(query.commit, 0, others)

    here.before(other)
    query.commit(0, mine)
    assert here.passed >= 2
    assert sorted(topics.read(topic)) == numbers(5)
    query.batch(1, ["next"])
    assert sorted(topics.read(topic)) == [*numbers(5), "next"]


class Beginnings:
    """How often a transactional id was begun with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = TransactionClient.initialize

        async def counted(transactor: TransactionClient) -> None:
            self.count += 1
            await original(transactor)

        monkeypatch.setattr(TransactionClient, "initialize", counted)


def test_a_driver_goes_on(query: Query, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins once, and again only when it has lost count."""
    beginnings = Beginnings(monkeypatch)
    for batch_id in range(5):
        query.batch(batch_id, [str(batch_id)])
    assert beginnings.count == 1
    query.batch(4, ["4"])
    assert beginnings.count == 2
    query.batch(5, ["5"])
    assert beginnings.count == 2
    assert sorted(topics.read(topic)) == numbers(6)


def test_a_driver_that_was_overtaken_goes_on(
    query: Query, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would have written next another has, and it finds out."""
    query.batch(0, ["0"])
    with elsewhere():
        query.batch(1, ["1"])
    beginnings = Beginnings(monkeypatch)
    query.batch(1, ["1"])
    assert beginnings.count == 1
    assert sorted(topics.read(topic)) == numbers(2)
    query.batch(2, ["2"])
    query.batch(3, ["3"])
    assert beginnings.count == 3, "where others write in the same name, each batch is begun anew"
    assert sorted(topics.read(topic)) == numbers(4)


def test_a_driver_goes_on_after_a_restart_of_the_broker(
    server: Server, query: Query, topics: Topics, topic: str
) -> None:
    query.batch(0, ["0"])
    topics.settle()  # Apache Kafka forgets its markers otherwise: see ADR 0032
    server.kill()
    server.start()
    query.batch(1, ["1"])
    assert sorted(topics.read(topic)) == numbers(2)


def test_a_name_that_is_fought_over(
    query: Query, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.client.errors import refused
    from ottla.wire.errors import ErrorCode

    async def fenced(*_: Any) -> None:
        raise refused(ErrorCode.PRODUCER_FENCED)

    with monkeypatch.context() as patch:
        patch.setattr(Carrier, "offsets", fenced)
        with pytest.raises(
            NotWritten, match="taken over by another writer 3 times\nhint: let one query at a time"
        ):
            query.batch(0, numbers(5))
    assert topics.read(topic) == []
    query.batch(0, numbers(5))
    assert sorted(topics.read(topic)) == numbers(5)


def test_rows_that_cannot_be_written_leave_nothing_open(
    server: Server, topics: Topics, topic_name: str, topic: str
) -> None:
    narrow = topics.make(f"{topic_name}-narrow", 1, max_message_bytes="1000")
    query = Query(server.bootstrap, narrow)
    with pytest.raises(Exception, match="max.message.bytes") as raised:
        query.batch(0, ["small", "x" * 5000])
    assert "hint: " in str(raised.value)
    assert topics.read(narrow, committed=False) == ["small"], "it was in the middle of it"
    writer, messages = Job(server.bootstrap, narrow).run(["another's"])
    writer.commit(messages)
    assert topics.read(narrow) == ["another's"], "nothing that was left open keeps readers waiting"
    query.batch(0, ["small"])
    assert topics.read(narrow) == ["another's", "small"]


def test_batches_that_a_topic_does_not_take_are_split(
    server: Server, topics: Topics, topic_name: str
) -> None:
    narrow = topics.make(f"{topic_name}-narrow", 1, max_message_bytes="20000")
    query = Query(server.bootstrap, narrow)
    query.batch(0, [f"{number:0100}" for number in range(2000)])
    assert list(map(int, topics.read(narrow))) == list(range(2000))


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
def test_compression(server: Server, topics: Topics, topic: str, codec: str) -> None:
    Query(server.bootstrap, topic, **{"kafka.compression.type": codec}).batch(0, numbers(1000))
    assert sorted(map(int, topics.read(topic))) == list(range(1000))


def test_a_transaction_longer_than_is_allowed(server: Server, topic: str) -> None:
    query = Query(server.bootstrap, topic, transactionTimeout="5h")
    with pytest.raises(
        NotWritten, match="do not allow a transaction of 18000 s\nhint: lower the option transactionTimeout"
    ):
        query.batch(0, numbers(5))


def test_a_transaction_that_takes_longer_than_it_may(
    server: Server, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    """The broker gives it up meanwhile; it is begun again, and written once."""
    from asyncio import sleep

    query = Query(server.bootstrap, topic, transactionTimeout="500ms")
    here = moment("offsets")

    async def aborted() -> None:
        deadline = 30.0
        while deadline > 0:
            await sleep(0.5)
            deadline -= 0.5
            described = await described_state(server.bootstrap, f"ottla-{query.query_id}")
            if described != "Ongoing":
                return
        raise AssertionError("the broker has not aborted it")

    here.before(aborted)
    query.batch(0, numbers(5))
    assert here.passed == 2
    assert sorted(topics.read(topic)) == numbers(5)


async def described_state(bootstrap: str, name: str) -> str:
    from ottla.client import Admin

    async with Admin(bootstrap) as admin:
        return str((await admin.transactions.describe([name]))[name].state)


def test_the_broker_restarts_between_beginning_and_end(
    server: Server, query: Query, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    from asyncio import to_thread

    async def restart() -> None:
        await to_thread(server.kill)
        await to_thread(server.start)

    moment("carry").after(restart)
    query.batch(0, numbers(50))
    assert sorted(map(int, topics.read(topic))) == list(range(50))
    query.batch(0, numbers(50))
    assert sorted(map(int, topics.read(topic))) == list(range(50))


def test_nobody_answers_the_end(
    server: Server, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asyncio import sleep

    query = Query(server.bootstrap, topic, transactionTimeout="3s")
    original = TransactionClient.commit

    async def lost(self: TransactionClient) -> None:
        await original(self)
        await sleep(60)

    with monkeypatch.context() as patch:
        patch.setattr(TransactionClient, "commit", lost)
        with pytest.raises(PerhapsWritten, match="hint: start the query again: it finds out"):
            query.batch(0, numbers(5))
    query.batch(0, numbers(5))
    assert sorted(topics.read(topic)) == numbers(5)


def test_a_job_is_written_whole(
    server: Server, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    writer, messages = Job(server.bootstrap, topic).run(numbers(5), numbers(5, 9))
    writer.commit(messages)
    assert sorted(topics.read(topic)) == numbers(9)
    writer, messages = Job(server.bootstrap, topic).run(["never"])
    writer.abort(messages)
    moment("commit").before(die)
    writer, messages = Job(server.bootstrap, topic, transactionTimeout="1s").run(["lost"])
    with pytest.raises(Killed):
        writer.commit(messages)
    assert sorted(topics.read(topic)) == numbers(9)


def test_a_job_of_which_nobody_knows_the_end(
    server: Server, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.client.errors import refused
    from ottla.wire.errors import ErrorCode

    async def fenced(_: TransactionClient) -> None:
        raise refused(ErrorCode.PRODUCER_FENCED)

    monkeypatch.setattr(TransactionClient, "commit", fenced)
    writer, messages = Job(server.bootstrap, topic).run(["perhaps"])
    with pytest.raises(PerhapsWritten, match="hint: look before you write it again"):
        writer.commit(messages)


def test_a_job_whose_end_was_answered_with_nonsense(
    server: Server, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator may have done what it was asked: nobody is told that nothing was written."""
    original = TransactionClient.commit

    async def garbled(self: TransactionClient) -> None:
        await original(self)
        raise Malformed("what is this")

    monkeypatch.setattr(TransactionClient, "commit", garbled)
    writer, messages = Job(server.bootstrap, topic).run(["perhaps"])
    with pytest.raises(PerhapsWritten, match="what is this\nhint: look before you write it again"):
        writer.commit(messages)
    assert topics.read(topic) == ["perhaps"]


def test_offsets_of_the_source_are_in_it(
    server: Server, topics: Topics, topic: str, topic_name: str, tmp_path: Path
) -> None:
    from ottla.client.blocking import Admin
    from ottla.wire.uuid import uuid_text

    source = topics.make(f"{topic_name}-in", 2)
    with Admin(server.bootstrap) as admin:
        described = admin.topics.describe([source])[source]
    topic_id = described.id if isinstance(described.id, str) else uuid_text(described.id)
    (tmp_path / "offsets").mkdir()
    line = f'{{"{source}":{{"0":4,"1":7}},"elsewhere":{{"0":1}},"#ids":{{"{source}":"{topic_id}","elsewhere":"x"}}}}'
    for batch_id in (0, 1):
        (tmp_path / "offsets" / str(batch_id)).write_text(f"v1\n{{}}\n{line}")
    query = Query(server.bootstrap, topic, checkpointLocation=str(tmp_path))
    query.batch(0, numbers(5))
    name, mark = f"ottla-{query.query_id}", f"ottla:{query.query_id}:"
    assert topics.marks(name) == {(source, 0): (4, f"{mark}0"), (source, 1): (7, f"{mark}0")}
    query.batch(0, numbers(5))
    query.batch(1, [])
    assert topics.marks(name) == {(source, 0): (4, f"{mark}1"), (source, 1): (7, f"{mark}1")}, (
        "without rows, too"
    )
    assert sorted(topics.read(topic)) == numbers(5)


def test_files_are_cleared_away(
    query: Query, topics: Topics, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    many = [f"{number:01000}" for number in range(1000)]
    planned = query.writer()
    query.attempt(0, many, 0, planned)
    messages = [query.attempt(0, many, 0, planned), query.attempt(1, ["few"], 0, planned)]
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.iterdir())) == 2
    query.commit(0, messages)
    assert list(tmp_path.glob("[!.]*")) == []
    assert len(topics.read(topic)) == 1001
    query.writer().abort([*query.run(1, many), None], 1)
    assert list(tmp_path.glob("[!.]*")) == []


def test_a_task_on_its_own(server: Server, topics: Topics, topic: str) -> None:
    """Portable: tasks write and commit by themselves, and the driver has nothing to do."""
    query = Query(server.bootstrap, topic, portable="true")
    messages = query.run(0, numbers(5), numbers(5, 9), [])
    assert sorted(topics.read(topic)) == numbers(9)
    query.commit(0, messages)
    query.batch(0, numbers(5), numbers(5, 9), [])
    query.batch(1, ["x"], ["y"], ["z"])
    assert sorted(topics.read(topic)) == [*numbers(9), "x", "y", "z"]
    found = {mark for _, mark in topics.marks(f"ottla-{query.query_id}-1").values()}
    assert f"ottla:{query.query_id}:1" in found


def test_two_attempts_of_a_task_on_its_own(
    server: Server, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    """The first is overtaken when it has written its rows: it finds itself fenced, and fails."""
    from asyncio import to_thread

    query = Query(server.bootstrap, topic, portable="true")
    planned = query.writer()

    async def other() -> None:
        with elsewhere():
            await to_thread(query.attempt, 0, numbers(5), 0, planned)

    moment("offsets").before(other)
    with pytest.raises(Fenced):
        query.attempt(0, numbers(5), 0, planned)
    assert sorted(topics.read(topic)) == numbers(5)


def test_a_task_on_its_own_that_dies(
    server: Server, topics: Topics, topic: str, moment: Callable[[str], Moment]
) -> None:
    query = Query(server.bootstrap, topic, portable="true")
    moment("commit").before(die)
    with pytest.raises(Killed):
        query.run(0, numbers(5), numbers(5, 9))
    query.batch(0, numbers(5), numbers(5, 9))
    assert sorted(topics.read(topic)) == numbers(9)


def ongoing(query: Query) -> list[str]:
    """The transactions of a query that would keep readers waiting."""
    with Admin(query.bootstrap) as admin:
        found = admin.transactions.list(states=["Ongoing"])
    return [name for name in found if query.query_id in name]


def test_rows_that_fail_halfway_leave_nothing_open(
    server: Server, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the rows come from may fail when some of them are written: a task before it, or a program of the user's."""
    monkeypatch.setattr("ottla.spark.sink.task._CHUNK_BYTES", 1)
    monkeypatch.setattr("ottla.spark.sink.encoding._GATHER_BYTES", 1)
    query = Query(server.bootstrap, topic, portable="true")
    begun: list[list[str]] = []

    def failing() -> Iterator[Any]:
        yield from rows(["a"])
        begun.append(ongoing(query))
        raise ZeroDivisionError

    with task(0, query.query_id, 0), pytest.raises(ZeroDivisionError):
        query.writer().write(failing())
    assert begun == [[f"ottla-{query.query_id}-0"]]
    assert ongoing(query) == []
    assert topics.read(topic) == []
    query.batch(0, ["a"])
    assert topics.read(topic) == ["a"]


def test_a_marker_that_cannot_be_written_leaves_nothing_open(
    server: Server, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise NotWritten("no marker today")

    query = Query(server.bootstrap, topic, portable="true")
    with monkeypatch.context() as patch:
        patch.setattr(Carrier, "offsets", fails)
        with pytest.raises(NotWritten, match="no marker today"):
            query.run(0, ["a"])
    assert ongoing(query) == []
    query.batch(0, ["a"])
    assert topics.read(topic) == ["a"]


def test_a_job_of_tasks_on_their_own(server: Server, topics: Topics, topic: str) -> None:
    job = Job(server.bootstrap, topic, portable="true")
    for _ in range(2):
        writer, messages = job.run(numbers(5), numbers(5, 9))
        writer.commit(messages)
    assert sorted(topics.read(topic)) == sorted(numbers(9) * 2)


def test_at_least_once(server: Server, topics: Topics, topic: str) -> None:
    query = Query(server.bootstrap, topic, guarantee="at-least-once")
    messages = query.run(0, numbers(5), numbers(5, 9))
    assert sorted(topics.read(topic)) == numbers(9), "it is there at once"
    query.commit(0, messages)
    query.batch(0, numbers(9))
    assert sorted(topics.read(topic)) == sorted(numbers(9) * 2)
    writer, messages = Job(server.bootstrap, topic, guarantee="at-least-once").run(["more"])
    writer.commit(messages)
    assert "more" in topics.read(topic)


def test_at_least_once_after_an_error(server: Server, topics: Topics, topic_name: str) -> None:
    narrow = topics.make(f"{topic_name}-narrow", 1, max_message_bytes="1000")
    query = Query(server.bootstrap, narrow, guarantee="at-least-once")
    with pytest.raises(RecordTooLarge):
        query.run(0, ["x" * 5000])
    query.run(0, ["small"])
    assert topics.read(narrow) == ["small"]


def test_a_carrier_leaves_nobody_listening(query: Query) -> None:
    query.batch(0, ["a"])
    cluster = connection.connected(query.writer()._options.settings()).cluster
    before = len(cluster._listeners)
    query.batch(1, ["b"])
    assert len(cluster._listeners) == before
