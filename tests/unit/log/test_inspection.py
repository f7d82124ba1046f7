"""What is looked through of a client's batch, and what a topic may have stored unseen."""

import pytest

from ottla.log.config import LogConfig
from ottla.log.inspection import PostponedError
from ottla.metadata.settings.describe import describe_topic
from ottla.metadata.settings.error import SettingError
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.settings.topic import effective_topic, validate_topic
from ottla.wire.batch import Batch, assemble
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode
from tests.unit.log.workbench import NOW, Workbench, batch

SETTING = "ottla.check.compressed.records"
BAD = b"\xff" * 40
COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def bad(codec, **how):
    return assemble(Batch.parse(batch(b"v", keys=[b"k"], codec=codec, **how)), BAD)


def code_of(log, data):
    try:
        log.append(data, 0, NOW)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"message_timestamp_type": "LogAppendTime"}, ErrorCode.NONE),
        ({"cleanup_policy": frozenset({"compact"})}, ErrorCode.INVALID_RECORD),
        ({"compression_type": "uncompressed"}, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_topic_may_have_compressed_batches_stored_unseen(tmp_path, codec, config, code):
    assert code_of(Workbench(tmp_path / "checked", **config).log, bad(codec)) is ErrorCode.INVALID_RECORD
    log = Workbench(tmp_path / "unseen", check_compressed_records=False, **config).log
    assert code_of(log, bad(codec)) is code
    assert log.end_offset == (code is ErrorCode.NONE)
    assert code_of(log, bad(Codec.NONE)) is ErrorCode.INVALID_RECORD, (
        "what is not compressed is always looked through"
    )


def test_unseen_batches_of_the_topics_own_codec(tmp_path):
    log = Workbench(tmp_path, check_compressed_records=False, compression_type="zstd").log
    assert code_of(log, bad(Codec.ZSTD)) is ErrorCode.NONE
    assert code_of(log, bad(Codec.GZIP)) is ErrorCode.INVALID_RECORD


def test_the_times_in_an_unseen_batchs_header_count(tmp_path):
    log = Workbench(tmp_path, check_compressed_records=False, message_timestamp_before_max_ms=1000).log
    late = batch(b"v", timestamp=NOW - 5000, codec=Codec.GZIP)
    assert code_of(log, late) is ErrorCode.INVALID_TIMESTAMP
    assert code_of(log, bad(Codec.GZIP, timestamp=NOW - 5000)) is ErrorCode.INVALID_RECORD


def test_an_unseen_batch_takes_no_thread(tmp_path):
    large = batch(bytes(600_000), codec=Codec.GZIP)
    with pytest.raises(PostponedError):
        Workbench(tmp_path / "checked").log.append(large, 0, NOW)
    assert (
        code_of(Workbench(tmp_path / "unseen", check_compressed_records=False).log, large) is ErrorCode.NONE
    )


def test_the_setting_is_a_topics_own_and_shown_where_it_is_set():
    values = BrokerValues({})
    assert LogConfig.from_settings(effective_topic(values, {})).check_compressed_records
    assert not LogConfig.from_settings(effective_topic(values, {SETTING: "false"})).check_compressed_records
    assert SETTING not in {each.name for each in describe_topic(values, {})}
    assert SETTING in {each.name for each in describe_topic(values, {SETTING: "false"})}
    validate_topic({SETTING: "true"})
    with pytest.raises(SettingError, match="perhaps"):
        validate_topic({SETTING: "perhaps"})
