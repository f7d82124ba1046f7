"""Whatever is in a log, a reader of it fails for that batch alone, and names it.

No producer gets such batches past the broker; here they stand in the files, as in a directory that another broker left.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ottla.cli.error import FAILED
from ottla.cli.main import main
from ottla.client import Consumer, TopicPartition
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.errors import ClientError, Malformed, RecordTooLarge
from ottla.spark.source.reading import rows_of
from ottla.spark.source.table import Table
from ottla.spark.source.task import Portion
from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, assemble, build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.record import Record
from tests.faults.bombs import MIB, UNREADABLE, many_records, one_large_record
from tests.faults.by_hand import Hand, batch, hand
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer

NOW = int(time.time() * 1000)
BOMBS = {"16 M records": many_records(16_000_000), "300 MB": one_large_record(300 * MIB, Codec.ZSTD)}
KINDS = {kind: f"kind-{number}" for number, kind in enumerate(UNREADABLE | BOMBS)}
COMPACTED = {f"compacted-{number}": kind for number, kind in enumerate(UNREADABLE)}


@dataclass
class Scene:
    """A running server, and where the bad batch of each kind ends."""

    server: OttlaServer
    ends: dict[str, int]


def sound(offset: int, age_ms: int, key: bytes = b"k") -> bytes:
    return bytes(
        build_batch([Record(offset, NOW - age_ms, key, b"sound", ())], base_offset=offset, leader_epoch=0)
    )


def placed(data: bytes, offset: int) -> bytes:
    """A batch with its offset, as a leader stamps it; it is the newest of its log by its time."""
    header = Batch.parse(data)._replace(
        base_offset=offset, partition_leader_epoch=0, base_timestamp=NOW, max_timestamp=NOW
    )
    return bytes(assemble(header, data[BATCH_HEADER_SIZE:]))


def put(server: OttlaServer, topic: str, segments: dict[int, bytes]) -> None:
    """Make these the segments of partition 0; indexes are rebuilt where there are none."""
    directory = server.log_dir / f"{topic}-0"
    for path in directory.iterdir():
        if path.name[0].isdigit():
            path.unlink()
    for base_offset, data in segments.items():
        (directory / f"{base_offset:020}.log").write_bytes(data)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = {"log.cleaner.backoff.ms": "100"}
    ends = {}
    with OttlaServer(tmp_path_factory.mktemp("unreadable"), settings) as server:
        with hand(server.port) as client:
            for topic in KINDS.values():
                assert client.create_topic(topic, 2) is ErrorCode.NONE
                for partition in (0, 1):
                    assert client.produce(topic, batch(b"v"), partition=partition)[0] is ErrorCode.NONE
            for topic in (*COMPACTED, "clean"):
                compact = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.01}
                assert client.create_topic(topic, **compact) is ErrorCode.NONE
                assert client.produce(topic, batch(b"v"))[0] is ErrorCode.NONE
        server.stop()
        for kind, data in (UNREADABLE | BOMBS).items():
            bad = placed(data, 1)
            ends[kind] = Batch.parse(bad).end_offset
            put(server, KINDS[kind], {0: sound(0, 10_000) + bad + sound(ends[kind], 9_000)})
        for topic, kind in COMPACTED.items():
            put(server, topic, {0: sound(0, 10_000) + placed(UNREADABLE[kind], 1), 2000: sound(2000, 0)})
        put(server, "clean", {0: sound(0, 20_000) + sound(1, 10_000), 2000: sound(2000, 0)})
        server.start()
        yield Scene(server, ends)


def ask(client: Hand, topic: str, timestamp: int, version: int = 9) -> list[tuple[ErrorCode, int]]:
    wanted = [
        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        for index in (0, 1)
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=wanted)]
    )
    parts = client.connection.ask(request, ListOffsetsResponse, version).topics[0].partitions
    return [(ErrorCode(part.error_code), part.offset) for part in parts]


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_look_up_fails_for_that_partition_alone(scene: Scene, kind: str) -> None:
    topic, end_offset = KINDS[kind], scene.ends[kind] + 1
    with hand(scene.server.port) as client:
        for _ in range(3):
            assert ask(client, topic, NOW - 5_000) == [(ErrorCode.INVALID_RECORD, -1), (ErrorCode.NONE, 0)]
            assert ask(client, topic, -3) == [(ErrorCode.INVALID_RECORD, -1), (ErrorCode.NONE, 0)]
        assert ask(client, topic, NOW - 10_000)[0] == (ErrorCode.NONE, 0)
        assert ask(client, topic, -1) == [(ErrorCode.NONE, end_offset), (ErrorCode.NONE, 1)]
        assert ask(client, topic, -2) == ask(client, topic, -4) == [(ErrorCode.NONE, 0)] * 2
        assert ask(client, topic, -5) == [(ErrorCode.NONE, -1)] * 2
    printed = scene.server.output_path.read_text()
    assert printed.count(f"{topic}-0: the batch at offset 1 cannot be read") == 1


@pytest.mark.parametrize("kind", UNREADABLE | BOMBS)
def test_our_client_names_the_batch_and_gets_past_it(scene: Scene, kind: str) -> None:
    topic, beyond = KINDS[kind], scene.ends[kind]

    async def read() -> None:
        async with Consumer(scene.server.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            records = await consumer.poll(timeout=10.0)
            assert [record.offset for record in records] == [0]
            for poll in (consumer.poll, consumer.poll_arrow):
                with pytest.raises((Malformed, RecordTooLarge), match=f"offset 1 of {topic}-0") as raised:
                    await poll(timeout=10.0)
                assert f"seek to offset {beyond}" in raised.value.hint
            consumer.seek(TopicPartition(topic, 0), beyond)
            assert [record.value for record in await consumer.poll(timeout=10.0)] == [b"sound"]

    asyncio.run(read())


@pytest.mark.parametrize("kind", UNREADABLE | BOMBS)
def test_spark_names_the_batch(scene: Scene, kind: str) -> None:
    topic = KINDS[kind]
    data = (scene.server.log_dir / f"{topic}-0" / f"{0:020}.log").read_bytes()
    rows = rows_of(
        Portion(FetchedBatches(topic, 0, data, 0), scene.ends[kind] + 1), Table(("offset", "value")), 1 << 40
    )
    assert next(rows).num_rows == 1
    with pytest.raises(ClientError, match=f"offset 1 of {topic}-0"):
        next(rows)


@pytest.mark.parametrize("kind", UNREADABLE | BOMBS)
def test_dump_log_names_the_batch_and_goes_on(
    scene: Scene, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path: Path = scene.server.log_dir / f"{KINDS[kind]}-0" / f"{0:020}.log"
    assert main(["dump-log", str(path), "--records"]) == FAILED
    printed = "".join(capsys.readouterr())
    assert "the records of the batch at offset 1:" in printed
    assert str(scene.ends[kind]) in printed, "the batch behind it is shown"


def test_compaction_gives_up_those_logs_and_cleans_the_others(scene: Scene) -> None:
    printed = scene.server.output_path.read_text
    eventually(
        lambda: all(printed().count(f"cleaning {topic}-0 failed") for topic in COMPACTED), seconds_max=60
    )
    with hand(scene.server.port) as client:
        eventually(lambda: sound(0, 20_000) not in client.read_all("clean"), seconds_max=60)
        for topic in COMPACTED:
            code, data = client.fetch(topic, 0)
            assert code is ErrorCode.NONE
            assert data.startswith(sound(0, 10_000)), "nothing of it was touched"
    for topic in COMPACTED:
        told = [line for line in printed().splitlines() if f"cleaning {topic}-0 failed" in line]
        assert len(told) == 1
        assert "the batch at offset 1 cannot be read" in told[0]
