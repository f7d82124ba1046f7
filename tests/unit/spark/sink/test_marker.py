"""The marker says which batch of which query was written last."""

import pytest

from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.spark.sink.marker import Marker, marked


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


def test_the_marker_beside_offsets() -> None:
    place = TopicPartition("out", 3)
    assert marked(Marker("q", 1), {place: 30}) == {place: OffsetAndMetadata(30, metadata="ottla:q:1")}


def test_what_comes_after() -> None:
    assert Marker("q", 1).precedes(Marker("q", 2))
    assert not Marker("q", 2).precedes(Marker("q", 2))
    assert not Marker("q", 1).precedes(Marker("other", 2))
