"""Topic settings become a log's settings."""

import pytest

from ottla.log.config import LogConfig
from ottla.wire.compression import Codec


def test_settings_are_taken_by_kafkas_names():
    config = LogConfig.from_settings(
        {
            "segment.bytes": 1 << 20,
            "retention.ms": -1,
            "cleanup.policy": ["compact", "delete"],
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "compression.zstd.level": 7,
            "leader.replication.throttled.replicas": [],
        }
    )
    assert config.segment_bytes == 1 << 20
    assert config.retention_ms == -1
    assert config.is_compacted
    assert config.is_deleted
    assert config.uses_append_time
    assert config.codec is Codec.ZSTD
    assert config.compression_level(Codec.ZSTD) == 7
    assert config.max_message_bytes == 1_048_588


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("compact", {"compact"}),
        ("compact, delete", {"compact", "delete"}),
        ([], set()),
        ("", set()),
        (("delete",), {"delete"}),
    ],
)
def test_a_policy_is_a_set(policy, expected):
    assert LogConfig.from_settings({"cleanup.policy": policy}).cleanup_policy == expected


def test_codecs_and_levels():
    assert LogConfig().codec is None
    assert LogConfig(compression_type="uncompressed").codec is Codec.NONE
    levels = {codec: LogConfig().compression_level(codec) for codec in Codec}
    assert levels == {Codec.NONE: None, Codec.GZIP: -1, Codec.SNAPPY: None, Codec.LZ4: 9, Codec.ZSTD: 3}
