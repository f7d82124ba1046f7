"""The marker of a micro-batch: an offset in the group of the transactional id, committed with the batch.

R1  The marker of a batch is there if, and only if, the rows of the batch are.
R2  Batches of a query are numbered upwards, and each is written when the one before it is. So whoever finds a number
    as high as its own has nothing to write.
R3  Another query, which counts for itself, has other marks: a query that begins anew under an old transactional id
    is not taken for a replay.

The mark is the text beside the offset: `ottla:<query id>:<batch id>`. It stands on the partitions of the source, where
they are known, else on those of the output with their ends, so that nobody sees a group that lags.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.record import OffsetAndMetadata, TopicPartition

_WORD = "ottla"


class Marker(NamedTuple):
    """Which batch of which query was written."""

    query_id: str
    batch_id: int

    def __str__(self) -> str:
        return f"{_WORD}:{self.query_id}:{self.batch_id}"

    @classmethod
    def parse(cls, text: str | None) -> "Marker | None":
        """Return the mark that a text is, or None."""
        word, _, rest = (text or "").partition(":")
        query_id, _, number = rest.rpartition(":")
        return cls(query_id, int(number)) if word == _WORD and number.isdecimal() else None

    def precedes(self, other: "Marker") -> bool:
        """Whether another batch comes after this one, in the same query."""
        return self.query_id == other.query_id and self.batch_id < other.batch_id

    def is_covered(self, offsets: Iterable[OffsetAndMetadata]) -> bool:
        """Whether this batch, or a later one of the query, was written by whoever left these offsets."""
        marks = [Marker.parse(offset.metadata) for offset in offsets]
        return any(
            mark is not None and mark.query_id == self.query_id and mark.batch_id >= self.batch_id
            for mark in marks
        )


def marked(marker: Marker, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets with the marker beside them."""
    return {place: OffsetAndMetadata(offset, metadata=str(marker)) for place, offset in offsets.items()}
