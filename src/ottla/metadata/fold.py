"""The fold: records in, images out, and metadata transactions kept whole (KIP-868).

    apply() --> pending delta --settle()--> Change(delta, image)

T1  Between BeginTransactionRecord and EndTransactionRecord nothing settles; after AbortTransactionRecord the changes in
    between never were.
T2  `image` is the last settled one. It may be handed to anyone, and kept.
"""

from typing import NamedTuple

from ottla.metadata.delta import Delta
from ottla.metadata.error import MetadataError
from ottla.metadata.image import EMPTY, Image
from ottla.wire.message import Message
from ottla.wire.records.metadata import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord


class Change(NamedTuple):
    """A step from one image to the next."""

    delta: Delta
    image: Image


class Fold:
    """Folds the metadata log, from `image` on."""

    __slots__ = ("_delta", "_epoch", "_offset", "_settled", "_timestamp_ms", "image", "transaction_offset")

    def __init__(self, image: Image = EMPTY) -> None:
        self.image = image
        self.transaction_offset: int | None = None  # where the open transaction began
        self._delta = Delta(image)
        self._settled: list[Change] = []
        self._offset = image.offset
        self._epoch = image.epoch
        self._timestamp_ms = image.timestamp_ms

    @property
    def end_offset(self) -> int:
        """The offset of the record that comes next."""
        return self._offset + 1

    def apply(self, offset: int, record: Message) -> None:
        """Take one record in."""
        if isinstance(record, BeginTransactionRecord):
            if self.transaction_offset is not None:
                inside = f"inside that of {self.transaction_offset}"
                raise MetadataError(f"a metadata transaction begins at {offset} {inside}")
            self._build()
            self.transaction_offset = offset
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            if self.transaction_offset is None:
                raise MetadataError(f"a metadata transaction ends at {offset} but none began")
            if isinstance(record, AbortTransactionRecord):
                self._delta = Delta(self._delta.before)
            self.transaction_offset = None
        else:
            self._delta.apply(record)
        self._offset = offset

    def advance(self, end_offset: int, epoch: int, timestamp_ms: int) -> None:
        """Note the end of a batch: where it ended, who led, and when it was written."""
        self._offset = end_offset - 1
        self._epoch = epoch
        self._timestamp_ms = max(timestamp_ms, self._timestamp_ms)

    def settle(self) -> list[Change]:
        """Turn what was applied into images, and return the steps; none while a transaction is open."""
        if self.transaction_offset is None:
            self._build()
        settled, self._settled = self._settled, []
        if settled:
            self.image = settled[-1].image
        return settled

    def _build(self) -> None:
        before = self._delta.before
        if self._offset != before.offset or self._epoch != before.epoch or not self._delta.empty:
            image = self._delta.image(self._offset, self._epoch, self._timestamp_ms)
            self._settled.append(Change(self._delta, image))
            self._delta = Delta(image)
