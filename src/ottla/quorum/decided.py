"""What a controller has decided, on its way into the log: checked, and framed as batches."""

from collections.abc import Sequence

from ottla.metadata.error import MetadataError
from ottla.metadata.feature import SUPPORTED, TRANSACTIONS_SINCE
from ottla.metadata.fold import Fold
from ottla.metadata.frame import encode
from ottla.metadata.image import Image
from ottla.quorum.checkpoint import frame_batch, grouped
from ottla.replicated.decision import Millis
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.records.metadata import BeginTransactionRecord, EndTransactionRecord

RECORDS_PER_BATCH = 10_000


def frame_decision(
    records: Sequence[Message], metadata_version: int, end_offset: int, epoch: int, now: Millis
) -> tuple[bytearray, int]:
    """The batches of one decision, atomic whatever their number, and the offset of its first record."""
    frames = [encode(record, metadata_version) for record in records]
    first = offset = end_offset
    groups = list(grouped(frames, RECORDS_PER_BATCH))
    if len(groups) > 1 and metadata_version >= TRANSACTIONS_SINCE:
        # What one batch cannot hold is made whole by a metadata transaction (KIP-868).
        groups.insert(0, [encode(BeginTransactionRecord(name="Large decision"))])
        groups.append([encode(EndTransactionRecord())])
        first += 1
    data = bytearray()
    for group in groups:
        data += frame_batch(group, base_offset=offset, epoch=epoch, timestamp_ms=now)
        offset += len(group)
    return data, first


def check_foldable(
    image: Image, transaction_offset: int | None, end_offset: int, records: Sequence[Message]
) -> None:
    """Raise BrokerError for a record that contradicts the state: it would stop every start from now on."""
    trial = Fold(image)
    if transaction_offset is not None:
        trial.transaction_offset = transaction_offset
    try:
        for offset, record in enumerate(records, end_offset):
            trial.apply(offset, record)
    except MetadataError as error:
        raise BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"The decision contradicts the metadata: {error}"
        ) from error


def check_features(image: Image) -> None:
    """Raise MetadataError when the cluster uses what this software does not know."""
    for name, level in image.features.all().items():
        low, high = SUPPORTED.get(name, (0, 0))
        if level and not low <= level <= high:
            raise MetadataError(f"the cluster uses {name}={level}; this software supports {low} to {high}")
