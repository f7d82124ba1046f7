"""The settings of one log, typed, immutable, replaced as a whole when an operator changes one.

Field names are Kafka's setting names with underscores, so that the translation needs no table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ottla.wire.compression import Codec

_FOREVER_MS = 0x7FFF_FFFF_FFFF_FFFF
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What a topic's settings ask of its logs; the defaults are Kafka's."""

    check_compressed_records: bool = True
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = _FOREVER_MS
    flush_ms: int = _FOREVER_MS
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = _FOREVER_MS
    max_decompressed_message_bytes: int = 128 << 20
    max_message_bytes: int = 1_048_588
    max_message_records: int = 1 << 20
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = _FOREVER_MS
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    producer_id_expiration_ms: int = _DAY_MS
    retention_bytes: int = -1
    retention_ms: int = 7 * _DAY_MS
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * _DAY_MS
    unclean_leader_election_enable: bool = False

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "LogConfig":
        """Build from topic setting names and typed values; what a log has no use for is passed over."""
        values: dict[str, Any] = {}
        for name, value in settings.items():
            field = name.removeprefix("ottla.").replace(".", "_")
            if field in _FIELDS:
                values[field] = value
        policy = values.get("cleanup_policy")
        if policy is not None:
            names = policy.split(",") if isinstance(policy, str) else policy
            values["cleanup_policy"] = frozenset(name.strip() for name in names if name.strip())
        return cls(**values)

    @property
    def is_compacted(self) -> bool:
        """Whether the cleaner keeps only the last record of each key."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether old segments go by age and size."""
        return "delete" in self.cleanup_policy

    @property
    def uses_append_time(self) -> bool:
        """Whether the broker's clock stamps the records."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def codec(self) -> Codec | None:
        """The codec every batch is brought to, or None when the producer's stays."""
        return _CODECS[self.compression_type]

    def compression_level(self, codec: Codec) -> int | None:
        """The level to compress at, or None for a codec that has none."""
        if codec is Codec.GZIP:
            return self.compression_gzip_level
        if codec is Codec.LZ4:
            return self.compression_lz4_level
        if codec is Codec.ZSTD:
            return self.compression_zstd_level
        return None


_FIELDS = frozenset(field.name for field in fields(LogConfig))
_CODECS: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
