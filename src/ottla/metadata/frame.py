"""The frame around a metadata record: frame version, record kind, record version, body.

The three numbers are unsigned varints. Which version a record is written in depends on the cluster's metadata.version
alone, so that every node that agreed to it can read the log.
"""

from collections.abc import Mapping

from ottla.metadata.error import MetadataError
from ottla.metadata.feature import (
    CORDONED_SINCE,
    DIRECTORIES_SINCE,
    ELR_SINCE,
    METADATA_VERSION_MAX,
    MIGRATION_SINCE,
)
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message
from ottla.wire.records import metadata as kafka

FRAME_VERSION = 1

RECORDS: tuple[type[Message], ...] = (
    kafka.RegisterBrokerRecord,
    kafka.UnregisterBrokerRecord,
    kafka.TopicRecord,
    kafka.PartitionRecord,
    kafka.ConfigRecord,
    kafka.PartitionChangeRecord,
    kafka.FenceBrokerRecord,
    kafka.UnfenceBrokerRecord,
    kafka.RemoveTopicRecord,
    kafka.DelegationTokenRecord,
    kafka.UserScramCredentialRecord,
    kafka.FeatureLevelRecord,
    kafka.ClientQuotaRecord,
    kafka.ProducerIdsRecord,
    kafka.BrokerRegistrationChangeRecord,
    kafka.AccessControlEntryRecord,
    kafka.RemoveAccessControlEntryRecord,
    kafka.NoOpRecord,
    kafka.ZkMigrationStateRecord,
    kafka.RemoveUserScramCredentialRecord,
    kafka.BeginTransactionRecord,
    kafka.EndTransactionRecord,
    kafka.AbortTransactionRecord,
    kafka.RemoveDelegationTokenRecord,
    kafka.RegisterControllerRecord,
    kafka.ClearElrRecord,
)
BY_KEY: Mapping[int | None, type[Message]] = {kind.api_key: kind for kind in RECORDS}


def version_of(record: Message, metadata_version: int) -> int:
    """The version in which a cluster at `metadata_version` writes this record."""
    if isinstance(record, kafka.PartitionRecord | kafka.PartitionChangeRecord):
        return 2 if metadata_version >= ELR_SINCE else int(metadata_version >= DIRECTORIES_SINCE)
    if isinstance(record, kafka.RegisterBrokerRecord):
        return 1 + sum(
            metadata_version >= since for since in (MIGRATION_SINCE, DIRECTORIES_SINCE, CORDONED_SINCE)
        )
    if isinstance(record, kafka.BrokerRegistrationChangeRecord):
        if record.cordoned_log_dirs is not None:
            return 3
        return 2 if record.log_dirs else int(record.in_controlled_shutdown != 0)
    return 0


def encode(record: Message, metadata_version: int = METADATA_VERSION_MAX) -> bytes:
    """The record's bytes as they stand in the log."""
    version = version_of(record, metadata_version)
    assert record.api_key is not None
    out = bytearray((FRAME_VERSION, record.api_key, version))
    type(record).encoder(version)(record, out)
    return bytes(out)


def decode(frame: bytes) -> Message:
    """The record in a frame; MetadataError when it is not one we know."""
    try:
        frame_version, position = _varint(frame, 0)
        if frame_version != FRAME_VERSION:
            raise MetadataError(f"a metadata record has frame version {frame_version}, not {FRAME_VERSION}")
        key, position = _varint(frame, position)
        version, position = _varint(frame, position)
    except IndexError:
        raise MetadataError(f"a metadata record ends inside its frame: {frame.hex()}") from None
    kind = BY_KEY.get(key)
    if kind is None:
        raise MetadataError(f"unknown metadata record of kind {key}, version {version}")
    if version not in kind.versions:
        known = f"{kind.versions[0]} to {kind.versions[-1]}"
        raise MetadataError(f"{kind.__name__} has version {version}; known are {known}")
    try:
        decoded, end = kind.decoder(version)(frame, position, len(frame))
        record: Message = decoded
    except ProtocolError as error:
        raise MetadataError(f"malformed {kind.__name__} of version {version}: {error}") from error
    if end != len(frame):
        raise MetadataError(
            f"{len(frame) - end} bytes are left over after a {kind.__name__} of version {version}"
        )
    return record


def _varint(frame: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35:
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise MetadataError("a varint in a metadata record's frame is too long")
