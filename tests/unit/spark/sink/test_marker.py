"""The marker says which batch of which query was written last."""

import pytest

from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.spark.sink.marker import Marker
from ottla.spark.sink.transaction import marked


def test_there_and_back() -> None:
    marker = Marker("5f0c:x", 42)
    assert str(marker) == "ottla:5f0c:x:42"
    assert Marker.parse(str(marker)) == marker


@pytest.mark.parametrize(
    "text", [None, "", "hello", "ottla:", "ottla:q", "ottla:q:-1", "other:q:1", "ottla:q:1x"]
)
def test_texts_of_others(text: str | None) -> None:
    assert Marker.parse(text) is None


@pytest.mark.parametrize(
    ("found", "covered"),
    [
        ([], False),
        (["ottla:q:6"], False),
        (["ottla:q:7"], True),
        (["ottla:q:8"], True),
        (["ottla:other:9"], False),
        (["", "somebody's", "ottla:q:3", "ottla:q:7"], True),
    ],
)
def test_whether_a_batch_is_written(found: list[str], covered: bool) -> None:
    offsets = [OffsetAndMetadata(1, metadata=text) for text in found]
    assert Marker("q", 7).is_covered(offsets) is covered


def test_where_the_marker_stands() -> None:
    out = {TopicPartition("out", 3): 30, TopicPartition("out", 1): 10}
    source = {TopicPartition("in", 0): 5, TopicPartition("in", 1): 6}
    assert marked(Marker("q", 1), out, {}) == {
        TopicPartition("out", 1): OffsetAndMetadata(11, metadata="ottla:q:1"),
        TopicPartition("out", 3): OffsetAndMetadata(31, metadata="ottla:q:1"),
    }
    assert marked(Marker("q", 1), out, source) == {
        place: OffsetAndMetadata(offset, metadata="ottla:q:1") for place, offset in source.items()
    }
