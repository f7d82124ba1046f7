"""Offsets of the source are read from the checkpoint, where they are in reach and our own source wrote them."""

from pathlib import Path

import pytest

from ottla.client.record import TopicPartition
from ottla.spark.sink.checkpoint import planned_ms, source_offsets
from ottla.world.disk import RealDisk

HEAD = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1}\n'
OURS = '{"in":{"0":5,"1":6},"#ids":{"in":"AAAA"}}'
FOUND = {"AAAA": {TopicPartition("in", 0): 5, TopicPartition("in", 1): 6}}


def write(checkpoint: Path, batch_id: int, text: str) -> None:
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / "offsets" / str(batch_id)).write_text(text)


@pytest.mark.parametrize("spelled", ["{}", "{}/", "file:{}", "file://{}"])
def test_a_source_of_ours(tmp_path: Path, spelled: str) -> None:
    write(tmp_path, 3, HEAD + OURS)
    assert source_offsets(RealDisk(), spelled.format(tmp_path), 3) == FOUND


@pytest.mark.parametrize("place", ["hdfs://name/{}", "s3a://bucket{}", "abfss://x@y/{}"])
def test_out_of_reach(tmp_path: Path, place: str) -> None:
    write(tmp_path, 3, HEAD + OURS)
    assert source_offsets(RealDisk(), place.format(tmp_path), 3) == {}


@pytest.mark.parametrize("line", ["-", "{3}", '{"in":{"0":5}}', '{"#ids":7}', '[{"#ids":{}}]', "", "12"])
def test_sources_of_others(tmp_path: Path, line: str) -> None:
    write(tmp_path, 3, HEAD + line + "\n" + OURS)
    assert source_offsets(RealDisk(), str(tmp_path), 3) == FOUND


def test_sources_with_names(tmp_path: Path) -> None:
    write(tmp_path, 3, "v2\n{}\norders:" + OURS)
    assert source_offsets(RealDisk(), str(tmp_path), 3) == FOUND


def test_a_topic_read_twice(tmp_path: Path) -> None:
    write(tmp_path, 0, HEAD + OURS + "\n" + OURS.replace("5", "4").replace("6", "9"))
    found = source_offsets(RealDisk(), str(tmp_path), 0)
    assert found == {"AAAA": {TopicPartition("in", 0): 4, TopicPartition("in", 1): 6}}


def test_no_such_batch(tmp_path: Path) -> None:
    assert source_offsets(RealDisk(), str(tmp_path), 3) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + OURS, 1),
        ('v1\n{"batchTimestampMs":1700000000000,"conf":{}}\n-', 1_700_000_000_000),
        ("v1\n{}\n" + OURS, None),
        ("v1\n[]\n" + OURS, None),
        ("v1\nnothing\n" + OURS, None),
        ('v1\n{"batchTimestampMs":"1"}\n', None),
        ('v1\n{"batchTimestampMs":0}\n', None),
        ("v1\n", None),
        ("", None),
    ],
)
def test_when_it_was_planned(tmp_path: Path, text: str, expected: int | None) -> None:
    write(tmp_path, 3, text)
    assert planned_ms(RealDisk(), f"file://{tmp_path}", 3) == expected
    assert planned_ms(RealDisk(), str(tmp_path), 4) is None
    assert planned_ms(RealDisk(), f"s3a://{tmp_path}", 3) is None
