"""What the records of internal topics mean: the state of groups, transactions and share groups, and the metadata log.

A record that cannot be read is shown as it is, with the reason; a dump is most needed where something is wrong.
"""

from collections.abc import Callable
from typing import Any

from ottla.cli.dump.plain import plain, shown_bytes
from ottla.log.names import METADATA_TOPIC
from ottla.replicated.keyed import Kinds, decode
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message
from ottla.wire.record import Record

Meaning = Callable[[Record], dict[str, Any]]

# The topics whose records mean something, and the name of the meaning.
TOPICS = {
    "__consumer_offsets": "groups",
    "__transaction_state": "transactions",
    "__share_group_state": "share",
    METADATA_TOPIC: "metadata",
}


def meaning_of(name: str, topic: str | None) -> Meaning | None:
    """Return what reads records, by the name of a meaning or, for `auto`, by the topic; None for records of anybody."""
    if name == "auto":
        name = TOPICS.get(topic or "", "none")
    if name == "none":
        return None
    if name == "metadata":
        return _metadata
    kinds = _kinds(name)
    return lambda record: _keyed(record, kinds)


def _kinds(name: str) -> Kinds:
    if name == "transactions":
        from ottla.transactions.records import KINDS as TRANSACTIONS

        return TRANSACTIONS
    if name == "share":
        from ottla.share.record import KINDS as SHARE_STATES

        return SHARE_STATES
    from ottla.groups.classic.records import KINDS as CLASSIC
    from ottla.groups.consumer.records import KINDS as CONSUMER
    from ottla.groups.offset_records import KINDS as OFFSETS
    from ottla.groups.share.records import KINDS as SHARE
    from ottla.groups.streams.records import KINDS as STREAMS

    return {**OFFSETS, **CLASSIC, **CONSUMER, **SHARE, **STREAMS}


def _metadata(record: Record) -> dict[str, Any]:
    from ottla.metadata.error import MetadataError
    from ottla.metadata.frame import decode as decode_frame

    if record.value is None:
        return {"unreadable": "a metadata record has a value"}
    try:
        message = decode_frame(record.value)
    except MetadataError as error:
        return {"unreadable": str(error), "value": shown_bytes(record.value)}
    return {"type": type(message).__name__, "data": plain(message)}


def _keyed(record: Record, kinds: Kinds) -> dict[str, Any]:
    key = record.key or b""
    try:
        found = decode(kinds, key, record.value)
    except ProtocolError as error:
        return {"unreadable": str(error)} | raw(record)
    if found is None:
        return {"unreadable": f"records of type {int.from_bytes(key[:2], 'big')} are not known"} | raw(record)
    type_name = type(found.key).__name__.removesuffix("Key")
    value = None if found.value is None else _with_protocol(found.value)
    return {"type": type_name, "key": plain(found.key), "version": found.version, "data": value}


def _with_protocol(value: Message) -> dict[str, Any]:
    """Return a value as plain data; what classic consumers say to each other is read, too."""
    from ottla.wire.records.classic_group import GroupMetadataValue

    data = plain(value)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == "consumer":
        from ottla.wire.messages.consumer_protocol import (
            ConsumerProtocolAssignment,
            ConsumerProtocolSubscription,
        )

        for shown, member in zip(data["members"], value.members, strict=True):
            shown["subscription"] = _embedded(ConsumerProtocolSubscription, member.subscription)
            shown["assignment"] = _embedded(ConsumerProtocolAssignment, member.assignment)
    return data


def _embedded(kind: type[Message], data: bytes) -> Any:
    """Return what a consumer wrote: two bytes of version, then the message."""
    version = int.from_bytes(data[:2], "big")
    try:
        message, _ = kind.decoder(min(version, kind.versions[-1]))(data, 2, len(data))
    except ProtocolError:
        return shown_bytes(data)
    return plain(message)


def raw(record: Record) -> dict[str, Any]:
    """Return key, value and headers of a record as they are."""
    found: dict[str, Any] = {
        "key": None if record.key is None else shown_bytes(record.key),
        "value": None if record.value is None else shown_bytes(record.value),
    }
    if record.headers:
        found["headers"] = [
            {"key": name, "value": None if value is None else shown_bytes(value)}
            for name, value in record.headers
        ]
    return found
