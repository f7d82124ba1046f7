"""What a producer has done so far."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(slots=True)
class Statistics:
    """Counts since the producer was opened, and how things stand now. Times are in seconds, sizes in bytes."""

    records_sent: int = 0
    """Records that brokers have acknowledged, or that were sent with acks=0."""
    records_failed: int = 0
    """Records that were not written."""
    bytes_sent: int = 0
    """Batches with their headers, compressed, repetitions included."""
    bytes_plain: int = 0
    """The same before compression, without repetitions."""
    bytes_compressed: int = 0
    """The same after compression, without repetitions."""
    batches_sent: int = 0
    """Batches, repetitions included."""
    batches_retried: int = 0
    """Batches sent again."""
    batches_split: int = 0
    """Batches that a broker found too large."""
    batches_expired: int = 0
    """Batches that had had their time."""
    requests: int = 0
    """Produce requests."""
    request_seconds: float = 0.0
    """Time between requests and their answers, in all."""
    request_seconds_max: float = 0.0
    """The longest of them."""
    queue_seconds: float = 0.0
    """Time between the first record of a batch and its leaving, in all."""
    queue_seconds_max: float = 0.0
    """The longest of them."""
    throttle_seconds: float = 0.0
    """Time for which brokers have asked for patience, in all."""
    transactions_committed: int = 0
    """Transactions that were committed."""
    transactions_aborted: int = 0
    """Transactions that were aborted."""
    buffer_bytes: int = 0
    """What `buffer.memory` allows."""
    buffer_bytes_free: int = 0
    """What is free of it now."""
    waiting: int = 0
    """Calls that wait for room now."""
    batches_pending: int = 0
    """Batches under way now."""
    requests_in_flight: int = 0
    """Produce requests without an answer now."""

    def copy(self) -> Self:
        """Return the counts as they are now."""
        return replace(self)
