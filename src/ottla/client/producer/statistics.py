"""The counts of a producer."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(slots=True)
class Statistics:
    """Counts since the producer was opened, and its current state. Times are in seconds, sizes in bytes."""

    records_sent: int = 0
    """Records that brokers have acknowledged, or that were sent with acks=0."""
    records_failed: int = 0
    """Records that were not written."""
    bytes_sent: int = 0
    """Size of batches as they were sent: compressed, with headers, retries included."""
    bytes_plain: int = 0
    """Size of batches before compression, without retries."""
    bytes_compressed: int = 0
    """Size of batches after compression, without retries."""
    batches_sent: int = 0
    """Batches, retries included."""
    batches_retried: int = 0
    """Batches sent again."""
    batches_split: int = 0
    """Batches that were split because a broker found them too large."""
    batches_expired: int = 0
    """Batches that reached delivery.timeout.ms."""
    requests: int = 0
    """Produce requests."""
    request_seconds: float = 0.0
    """Time between requests and their answers, in total."""
    request_seconds_max: float = 0.0
    """The longest of them."""
    queue_seconds: float = 0.0
    """Time between the first record of a batch and its first request, in total."""
    queue_seconds_max: float = 0.0
    """The longest of them."""
    throttle_seconds: float = 0.0
    """Time for which brokers have throttled the producer, in total."""
    transactions_committed: int = 0
    """Transactions that were committed."""
    transactions_aborted: int = 0
    """Transactions that were aborted."""
    buffer_bytes: int = 0
    """The size of the buffer (buffer.memory)."""
    buffer_bytes_free: int = 0
    """The free part of the buffer now."""
    waiting: int = 0
    """Calls that wait for room in the buffer now."""
    batches_pending: int = 0
    """Batches without an outcome now."""
    requests_in_flight: int = 0
    """Produce requests without an answer now."""

    def copy(self) -> Self:
        """Return the counts as they are now."""
        return replace(self)
