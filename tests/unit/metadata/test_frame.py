"""The frame of a metadata record, byte for byte as Kafka writes it."""

import pytest

from ottla.metadata.error import MetadataError
from ottla.metadata.frame import decode, encode, version_of
from ottla.wire.records import metadata as kafka

# As `kafka-storage format` of Apache Kafka 4.3.1 writes it into bootstrap.checkpoint.
METADATA_VERSION_30 = bytes.fromhex("010c00116d657461646174612e76657273696f6e001e00")


def test_a_record_is_framed_as_kafka_does() -> None:
    record = kafka.FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert encode(record) == METADATA_VERSION_30
    assert decode(METADATA_VERSION_30) == record


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"", "ends inside its frame"),
        (b"\x01", "ends inside its frame"),
        (b"\x02\x0c\x00", "frame version 2"),
        (b"\x01\x7e\x00", "unknown metadata record of kind 126"),
        (b"\x01\x0c\x05", "FeatureLevelRecord has version 5"),
        (METADATA_VERSION_30[:-2], "malformed FeatureLevelRecord"),
        (METADATA_VERSION_30 + b"\x00", "left over"),
        (b"\xff\xff\xff\xff\xff\xff", "too long"),
    ],
)
def test_what_is_not_a_record_is_refused_clearly(frame: bytes, words: str) -> None:
    with pytest.raises(MetadataError, match=words):
        decode(frame)


@pytest.mark.parametrize(
    ("metadata_version", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)]
)
def test_partitions_are_written_as_old_as_the_cluster_needs(metadata_version: int, version: int) -> None:
    assert version_of(kafka.PartitionRecord(), metadata_version) == version
    assert version_of(kafka.PartitionChangeRecord(), metadata_version) == version


@pytest.mark.parametrize(
    ("metadata_version", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)]
)
def test_registrations_are_written_as_old_as_the_cluster_needs(metadata_version: int, version: int) -> None:
    assert version_of(kafka.RegisterBrokerRecord(), metadata_version) == version


def test_a_registration_change_has_the_version_of_what_it_changes() -> None:
    change = kafka.BrokerRegistrationChangeRecord
    assert version_of(change(fenced=1), 30) == 0
    assert version_of(change(in_controlled_shutdown=1), 30) == 1
    assert version_of(change(log_dirs=[bytes(16)]), 30) == 2
    assert version_of(change(cordoned_log_dirs=[]), 30) == 3
