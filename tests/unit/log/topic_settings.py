"""Every setting of a topic that an append or a fetch looks at, as cases: C and Python are compared under each.

One table for all such comparisons: of the append and of what a power loss leaves (`tests/property`), of the general
path, the express one and the lane (`tests/unit/broker`), and of whole histories (`tests/sim`). `tests/tidy` keeps it
whole: a setting of `LogConfig` is in a case or has a reason here.
"""

from typing import Any, NamedTuple


class Case(NamedTuple):
    """Settings of one log, by the fields of `LogConfig`.

    `topic` has them by Kafka's names, for a topic that is made by a request, where Kafka's bounds are not so low; None
    for what no request can ask for. `is_plain` says whether the compiled append stores its batches.
    """

    log: dict[str, Any]
    topic: dict[str, str] | None
    is_plain: bool = True

    @property
    def keywords(self) -> dict[str, str]:
        """The settings of the topic as keywords of a test's helper."""
        return {name.replace(".", "_"): value for name, value in (self.topic or {}).items()}


def _looked_through(log: dict[str, Any]) -> Case:
    """Settings under which no batch is plain."""
    topic = {
        ("ottla." if name == "check_compressed_records" else "") + name.replace("_", "."): _text(value)
        for name, value in log.items()
    }
    return Case(log, topic, is_plain=False)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(sorted(value)) if isinstance(value, frozenset) else str(value)


COMPACT = frozenset({"compact"})
CASES = {
    "default": Case({}, {}),
    "LogAppendTime": _looked_through({"message_timestamp_type": "LogAppendTime"}),
    "compacted": _looked_through({"cleanup_policy": COMPACT}),
    "compacted and deleted": _looked_through({"cleanup_policy": frozenset({"compact", "delete"})}),
    "gzip, fast": _looked_through({"compression_type": "gzip", "compression_gzip_level": 1}),
    "gzip, small": _looked_through({"compression_type": "gzip", "compression_gzip_level": 9}),
    "snappy": _looked_through({"compression_type": "snappy"}),
    "lz4, fast": _looked_through({"compression_type": "lz4", "compression_lz4_level": 1}),
    "lz4, small": _looked_through({"compression_type": "lz4", "compression_lz4_level": 17}),
    "zstd, fast": _looked_through({"compression_type": "zstd", "compression_zstd_level": -5}),
    "zstd, small": _looked_through({"compression_type": "zstd", "compression_zstd_level": 19}),
    "uncompressed": _looked_through({"compression_type": "uncompressed"}),
    "not looked into": Case({"check_compressed_records": False}, {"ottla.check.compressed.records": "false"}),
    "not looked into, but compacted": _looked_through({"check_compressed_records": False, "cleanup_policy": COMPACT}),
    "not looked into, but compressed anew": _looked_through(
        {"check_compressed_records": False, "compression_type": "zstd"}
    ),
    "bounds of timestamps": Case(
        {"message_timestamp_before_max_ms": 500, "message_timestamp_after_max_ms": 500},
        {"message.timestamp.before.max.ms": "500", "message.timestamp.after.max.ms": "500"},
    ),
    "largest message": Case({"max_message_bytes": 700}, {"max.message.bytes": "700"}),
    "limits of compressed batches": Case({"max_message_records": 2, "max_decompressed_message_bytes": 400}, None),
    "small segments": Case({"segment_bytes": 2000, "index_interval_bytes": 300}, {"segment.bytes": "1048576"}),
    "small indexes": Case(
        {"segment_index_bytes": 48, "index_interval_bytes": 0},
        {"segment.index.bytes": "48", "index.interval.bytes": "0"},
    ),
    "short segments": Case({"segment_ms": 1000}, {"segment.ms": "1000"}),
    "jitter": Case(
        {"segment_ms": 5000, "segment_jitter_ms": 4000}, {"segment.ms": "5000", "segment.jitter.ms": "4000"}
    ),
    "flush.messages": Case({"flush_messages": 2}, {"flush.messages": "2"}),
    "flush.ms": Case({"flush_ms": 1}, {"flush.ms": "1"}),
    "preallocate": Case({"preallocate": True, "segment_bytes": 4000}, {"preallocate": "true"}),
    "min.insync.replicas": Case({"min_insync_replicas": 2}, {"min.insync.replicas": "2"}),
    "all of it": _looked_through(
        {
            "message_timestamp_type": "LogAppendTime",
            "cleanup_policy": frozenset({"compact", "delete"}),
            "compression_type": "gzip",
        }
    ),
}
OF_TOPICS = {name: case for name, case in CASES.items() if case.topic is not None}

# What neither an append nor a fetch looks at, and who does.
NOT_LOOKED_AT = {
    "delete_retention_ms": "compaction",
    "file_delete_delay_ms": "removal of files",
    "max_compaction_lag_ms": "compaction",
    "min_cleanable_dirty_ratio": "compaction",
    "min_compaction_lag_ms": "compaction",
    "producer_id_expiration_ms": "expiry of producers, a chore",
    "retention_bytes": "retention, a chore",
    "retention_ms": "retention, a chore",
    "unclean_leader_election_enable": "the controller, and the start of a node",
}
