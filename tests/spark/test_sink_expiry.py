"""A batch whose marker may have expired is neither written twice nor left out, unless somebody says which.

Spark is played by `sink_stage`; the brokers keep offsets for a minute.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.client.blocking import Admin
from ottla.spark.sink.refusal import PerhapsWritten
from tests.compat.absence import need_kafka
from tests.compat.chosen import SERVERS
from tests.peers.deadline import eventually
from tests.peers.server import Server
from tests.spark.sink_stage import Query, Topics
from tests.spark.test_sink_transactions import BOTH, SETTINGS, elsewhere, numbers

RETENTION_MS = 60_000
SHORT = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
HOUR_MS = 3_600_000
REMOTE = "s3a://bucket/checkpoint"


@pytest.fixture(scope="module", params=BOTH)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param == "kafka":
        need_kafka()
    with SERVERS[request.param](tmp_path_factory.mktemp("server"), SETTINGS | SHORT) as running:
        yield running


@pytest.fixture
def topics(server: Server) -> Topics:
    return Topics(server.bootstrap)


@pytest.fixture
def topic(topics: Topics, topic_name: str) -> str:
    return topics.make(topic_name, 2)


def plan(checkpoint: Path, batch_id: int, age_ms: int = 0) -> int:
    """Write down, as Spark does, that a batch was planned so long ago."""
    planned_ms = time.time_ns() // 1_000_000 - age_ms
    (checkpoint / "offsets").mkdir(exist_ok=True)
    line = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": planned_ms, "conf": {}})
    (checkpoint / "offsets" / str(batch_id)).write_text(f"v1\n{line}\n0")
    return planned_ms


def expire(server: Server, topics: Topics, group: str) -> None:
    """Delete the marks of a group, as brokers do in the end."""
    topics.settle()
    with Admin(server.bootstrap) as admin:
        admin.offsets.delete(group, list(admin.offsets.committed(group)))
    assert topics.marks(group) == {}


def again(query: Query, batch_id: int, *parts: list[str], **options: str) -> None:
    """Run a batch in a process that knows nothing of the one before."""
    with elsewhere():
        Query(query.bootstrap, query.options["topic"], query.query_id, **options).batch(batch_id, *parts)


@pytest.mark.parametrize("portable", ["false", "true"])
def test_a_marker_that_has_expired(
    server: Server, topics: Topics, topic: str, tmp_path: Path, portable: str
) -> None:
    """The driver died between its commit and Spark's, and the query is started again after the retention."""
    options = {"checkpointLocation": str(tmp_path), "portable": portable}
    query = Query(server.bootstrap, topic, **options)
    for batch_id in (0, 1):
        plan(tmp_path, batch_id)
        query.batch(batch_id, [str(batch_id)])
    group = f"ottla-{query.query_id}" + ("-0" if portable == "true" else "")
    plan(tmp_path, 1, HOUR_MS)
    expire(server, topics, group)
    with pytest.raises(PerhapsWritten) as raised:
        again(query, 1, ["1"], **options)
    said = str(raised.value)
    assert f"batch 1 of query {query.query_id} has no marker in group {group}" in said
    assert "Spark planned it 60 minutes ago, and brokers keep markers for 1 minutes" in said
    assert "hint: look for its rows in the output" in said
    assert "missingMarker set to skip:1 if they are there, to write:1 if they are not" in said
    assert sorted(topics.read(topic, committed=False)) == numbers(2)
    with pytest.raises(PerhapsWritten):
        again(query, 1, ["1"], missingMarker="skip:0", **options)
    again(query, 1, ["1"], missingMarker="skip:1", **options)
    assert sorted(topics.read(topic)) == numbers(2)
    plan(tmp_path, 2)
    again(query, 2, ["2"], missingMarker="skip:1", **options)
    assert sorted(topics.read(topic)) == numbers(3)


def test_a_batch_that_was_not_written_before_its_marker_could_expire(
    server: Server, topics: Topics, topic: str, tmp_path: Path
) -> None:
    options = {"checkpointLocation": str(tmp_path)}
    query = Query(server.bootstrap, topic, **options)
    plan(tmp_path, 5, HOUR_MS)
    with pytest.raises(PerhapsWritten):
        again(query, 5, ["5"], **options)
    again(query, 5, ["5"], missingMarker="write:5", **options)
    again(query, 5, ["5"], missingMarker="write:5", **options)
    assert topics.read(topic) == ["5"], "it has a marker now"


def test_a_query_that_rested(server: Server, topics: Topics, topic: str, tmp_path: Path) -> None:
    """All batches were finished before it was stopped, so the next is planned after it is started."""
    options = {"checkpointLocation": str(tmp_path)}
    query = Query(server.bootstrap, topic, **options)
    plan(tmp_path, 0, HOUR_MS)
    again(query, 0, ["0"], missingMarker="write:0", **options)
    expire(server, topics, f"ottla-{query.query_id}")
    plan(tmp_path, 1)
    again(query, 1, ["1"], **options)
    assert sorted(topics.read(topic)) == numbers(2)


def test_an_old_batch_after_one_that_has_its_marker(
    server: Server, topics: Topics, topic: str, tmp_path: Path
) -> None:
    """A marker of the batch before says that this one is not written, however old it is."""
    options = {"checkpointLocation": str(tmp_path)}
    query = Query(server.bootstrap, topic, **options)
    plan(tmp_path, 0)
    again(query, 0, ["0"], **options)
    plan(tmp_path, 1, HOUR_MS)
    again(query, 1, ["1"], **options)
    assert sorted(topics.read(topic)) == numbers(2)


@pytest.mark.parametrize("portable", ["false", "true"])
def test_a_checkpoint_out_of_reach(server: Server, topics: Topics, topic: str, portable: str) -> None:
    """From the first batch on there is a marker, so who finds none has waited for too long, and is told."""
    options = {"checkpointLocation": REMOTE, "portable": portable}
    query = Query(server.bootstrap, topic, **options)
    group = f"ottla-{query.query_id}" + ("-0" if portable == "true" else "")
    again(query, 0, [], **options)
    assert set(topics.marks(group).values()) == {(0, f"ottla:{query.query_id}:0")}
    again(query, 1, ["1"], **options)
    again(query, 2, [], **options)
    again(query, 3, ["3"], **options)
    assert sorted(topics.read(topic)) == ["1", "3"]
    expire(server, topics, group)
    with pytest.raises(
        PerhapsWritten, match="when Spark planned it is not known\nhint: give the option checkpoint"
    ):
        again(query, 3, ["3"], **options)
    again(query, 3, ["3"], missingMarker="skip:3", **options)
    again(query, 4, ["4"], missingMarker="write", **options)
    assert sorted(topics.read(topic)) == ["1", "3", "4"]


@pytest.mark.parametrize("portable", ["false", "true"])
def test_a_checkpoint_that_looks_near_and_is_elsewhere(
    server: Server, topics: Topics, topic: str, tmp_path: Path, portable: str
) -> None:
    """A path without a scheme may be of another file system, or of the driver's machine and not of the task's."""
    options = {"checkpointLocation": str(tmp_path / "elsewhere"), "portable": portable}
    query = Query(server.bootstrap, topic, **options)
    again(query, 0, [], **options)
    again(query, 1, ["1"], **options)
    again(query, 2, [], **options)
    assert topics.read(topic) == ["1"]
    expire(server, topics, f"ottla-{query.query_id}" + ("-0" if portable == "true" else ""))
    with pytest.raises(PerhapsWritten, match="when Spark planned it is not known"):
        again(query, 3, ["3"], **options)


@pytest.mark.parametrize("portable", ["false", "true"])
def test_what_was_skipped_has_a_marker(server: Server, topics: Topics, topic: str, portable: str) -> None:
    """So that one answer is enough, and the next batch, or the next start, does not ask again."""
    options = {"checkpointLocation": REMOTE, "portable": portable}
    query = Query(server.bootstrap, topic, **options)
    again(query, 0, ["0"], **options)
    group = f"ottla-{query.query_id}" + ("-0" if portable == "true" else "")
    expire(server, topics, group)
    again(query, 1, ["1"], missingMarker="skip:1", **options)
    assert {text for _, text in topics.marks(group).values()} == {f"ottla:{query.query_id}:1"}
    again(query, 1, ["1"], **options)
    again(query, 2, ["2"], **options)
    assert sorted(topics.read(topic)) == ["0", "2"]


def test_a_time_that_was_told(server: Server, topics: Topics, topic: str, tmp_path: Path) -> None:
    """`write_batch` asks Spark itself, wherever the checkpoint is."""
    query = Query(server.bootstrap, topic)
    again(query, 4, ["4"], plannedMs=str(plan(tmp_path, 4)))
    expire(server, topics, f"ottla-{query.query_id}")
    with pytest.raises(PerhapsWritten, match="60 minutes ago"):
        again(query, 4, ["4"], plannedMs=str(plan(tmp_path, 4, HOUR_MS)))
    with pytest.raises(PerhapsWritten, match="60 minutes from now"):
        again(query, 4, ["4"], plannedMs=str(plan(tmp_path, 4, -HOUR_MS)))
    assert topics.read(topic) == ["4"]


@pytest.mark.long
def test_brokers_that_let_it_expire(server: Server, topics: Topics, topic: str, tmp_path: Path) -> None:
    """The same with nothing made up: the brokers delete the marker, a minute after its commit."""
    options = {"checkpointLocation": str(tmp_path)}
    query = Query(server.bootstrap, topic, **options)
    plan(tmp_path, 0)
    again(query, 0, ["0"], **options)
    group = f"ottla-{query.query_id}"
    again(query, 0, ["0"], **options)
    assert topics.read(topic) == ["0"]
    eventually(lambda: topics.marks(group) == {}, RETENTION_MS / 1000 + 60)
    with pytest.raises(PerhapsWritten, match="has no marker"):
        again(query, 0, ["0"], **options)
    assert topics.read(topic, committed=False) == ["0"]
