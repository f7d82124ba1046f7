"""What a client must do for the tests: produce samples to one partition, and read them back by assignment."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
READ_SECONDS_MAX = 20.0

Headers = tuple[tuple[str, bytes | None], ...]


class Sample(NamedTuple):
    """A record as the writer gives it."""

    key: bytes | None = None
    value: bytes | None = b""
    headers: Headers = ()
    timestamp_ms: int | None = None


class Seen(NamedTuple):
    """A record as the reader gets it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Client(Protocol):
    """One client library or program."""

    name: str
    text_only: bool  # cannot be given arbitrary bytes, headers or timestamps record by record

    def absent(self) -> str | None:
        """Why this client cannot be used here, or None when it can."""

    def produce(
        self,
        bootstrap: str,
        topic: str,
        samples: Sequence[Sample],
        *,
        partition: int = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        """Write the samples in order, and return when all are answered (or sent, with acks 0)."""

    def read(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        start_offset: int = 0,
        isolation: str = "read_uncommitted",
    ) -> list[Seen]:
        """Read `count` records from `start_offset` on; fewer only when the deadline passes."""
