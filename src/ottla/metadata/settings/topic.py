"""Every topic setting, and where its default comes from.

A topic's value is the one set on the topic, else that of the first broker setting in `SYNONYMS` that has one, else
the default written here. The two tables are checked against Kafka's own list by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.metadata.settings.definition import (
    ANY,
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    MEDIUM,
    STRING,
    Setting,
    Value,
    by_name,
)
from ottla.metadata.settings.error import ConflictingSettings, UnknownSetting
from ottla.metadata.settings.rule import (
    GzipLevel,
    ThrottledReplicas,
    at_least,
    between,
    list_of,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

CODECS = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMPS = one_of("CreateTime", "LogAppendTime")
POLICIES = list_of("compact", "delete")

TOPIC_SETTINGS: tuple[Setting, ...] = (
    Setting("cleanup.policy", LIST, ("delete",), MEDIUM, POLICIES,
            "What happens to old segments: delete drops them by age and size, compact keeps the last record of "
            "each key; both may be given, and an empty list keeps everything."),
    Setting("compression.gzip.level", INT, -1, MEDIUM, GzipLevel(),
            "Level used when the broker itself compresses with gzip."),
    Setting("compression.lz4.level", INT, 9, MEDIUM, between(1, 17),
            "Level used when the broker itself compresses with lz4."),
    Setting("compression.type", STRING, "producer", MEDIUM, CODECS,
            "Codec in which batches are stored; producer keeps them as they came."),
    Setting("compression.zstd.level", INT, 3, MEDIUM, between(-131072, 22),
            "Level used when the broker itself compresses with zstd."),
    Setting("delete.retention.ms", LONG, 86_400_000, MEDIUM, at_least(0),
            "How long a tombstone stays in a compacted topic, so that a reader who started at the beginning in "
            "time sees the deletion."),
    Setting("errors.deadletterqueue.group.enable", BOOLEAN, False, MEDIUM, ANY,
            "Whether share groups may have this topic as their dead-letter topic.", later=True),
    Setting("file.delete.delay.ms", LONG, 60_000, MEDIUM, at_least(0),
            "How long a segment that fell out of the log stays on disk under its .deleted name."),
    Setting("flush.messages", LONG, LONG_MAX, MEDIUM, at_least(1),
            "Number of records after which the log is flushed to disk even if nobody waits for it."),
    Setting("flush.ms", LONG, LONG_MAX, MEDIUM, at_least(0),
            "Time after which unflushed records are flushed to disk even if nobody waits for it."),
    Setting("follower.replication.throttled.replicas", LIST, (), MEDIUM, ThrottledReplicas(),
            "Replicas whose following is slowed to the throttled rate: partition:broker pairs, or * for all."),
    Setting("index.interval.bytes", INT, 4096, MEDIUM, at_least(0),
            "Bytes of log between two entries of the offset index: fewer make look-ups shorter and the index "
            "larger."),
    Setting("leader.replication.throttled.replicas", LIST, (), MEDIUM, ThrottledReplicas(),
            "Replicas whose leading is slowed to the throttled rate: partition:broker pairs, or * for all."),
    Setting("local.retention.bytes", LONG, -2, MEDIUM, at_least(-2),
            "Size up to which segments stay on local disk once they are in remote storage; -2 takes "
            "retention.bytes."),
    Setting("local.retention.ms", LONG, -2, MEDIUM, at_least(-2),
            "Time for which segments stay on local disk once they are in remote storage; -2 takes retention.ms."),
    Setting("max.compaction.lag.ms", LONG, LONG_MAX, MEDIUM, at_least(1),
            "Longest time that a record of a compacted topic may wait before it takes part in compaction."),
    Setting("max.message.bytes", INT, 1_048_588, MEDIUM, at_least(0),
            "Largest record batch taken, as it arrives: after compression, header included."),
    Setting("message.timestamp.after.max.ms", LONG, 3_600_000, MEDIUM, at_least(0),
            "How far in the future a record's own timestamp may lie; it is refused beyond. Not looked at with "
            "LogAppendTime."),
    Setting("message.timestamp.before.max.ms", LONG, LONG_MAX, MEDIUM, at_least(0),
            "How far in the past a record's own timestamp may lie; it is refused beyond. Not looked at with "
            "LogAppendTime."),
    Setting("message.timestamp.type", STRING, "CreateTime", MEDIUM, TIMESTAMPS,
            "Whether records keep the producer's timestamp or get the broker's when they are appended."),
    Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, MEDIUM, between(0, 1),
            "Share of a compacted log that must be uncleaned before the cleaner takes it up."),
    Setting("min.compaction.lag.ms", LONG, 0, MEDIUM, at_least(0),
            "Shortest time that a record of a compacted topic is left as it is."),
    Setting("min.insync.replicas", INT, 1, MEDIUM, at_least(1),
            "Replicas that must be in sync for a write with acks=all to be taken."),
    Setting("preallocate", BOOLEAN, False, MEDIUM, ANY,
            "Whether a new segment's file gets its full size at once."),
    Setting("remote.log.copy.disable", BOOLEAN, False, MEDIUM, ANY,
            "Whether a tiered topic stops copying new segments to remote storage and becomes read-only there."),
    Setting("remote.log.delete.on.disable", BOOLEAN, False, MEDIUM, ANY,
            "Whether turning remote storage off for a topic also deletes what it holds there."),
    Setting("remote.storage.enable", BOOLEAN, False, MEDIUM, ANY,
            "Whether the topic's older segments move to remote storage."),
    Setting("retention.bytes", LONG, -1, MEDIUM, ANY,
            "Size to which a partition is cut back by deleting its oldest segments; -1 for no limit."),
    Setting("retention.ms", LONG, 604_800_000, MEDIUM, at_least(-1),
            "Age at which a segment is deleted; -1 for no limit."),
    Setting("segment.bytes", INT, 1_073_741_824, MEDIUM, at_least(1_048_576),
            "Size at which the active segment is closed and a new one begun."),
    Setting("segment.index.bytes", INT, 10_485_760, MEDIUM, at_least(4),
            "Largest size of a segment's index; the segment is rolled when it is full."),
    Setting("segment.jitter.ms", LONG, 0, MEDIUM, at_least(0),
            "Random part taken off segment.ms, so that many partitions do not roll at the same moment."),
    Setting("segment.ms", LONG, 604_800_000, MEDIUM, at_least(1),
            "Age at which the active segment is rolled though it is not full."),
    Setting("unclean.leader.election.enable", BOOLEAN, False, MEDIUM, ANY,
            "Whether a replica that is not in sync may lead when no other is left, at the price of lost records."),
    Setting("ottla.check.compressed.records", BOOLEAN, True, MEDIUM, ANY,
            "Whether compressed batches of producers are decompressed and looked through before they are stored, as "
            "Kafka does; false stores them unseen where nothing else asks for it. Only Ottla has it, and shows it "
            "where it is set.", internal=True),
    Setting("internal.segment.bytes", INT, None, MEDIUM, ANY,
            "Replaces segment.bytes without its lower bound; for tests.", internal=True),
)

TOPIC: dict[str, Setting] = by_name(TOPIC_SETTINGS)


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that gives a topic setting its default, and its unit as a factor."""

    name: str
    factor: int = 1


def _same(name: str) -> tuple[Synonym, ...]:
    return (Synonym(name),)


SYNONYMS: dict[str, tuple[Synonym, ...]] = {
    "cleanup.policy": _same("log.cleanup.policy"),
    "compression.gzip.level": _same("compression.gzip.level"),
    "compression.lz4.level": _same("compression.lz4.level"),
    "compression.type": _same("compression.type"),
    "compression.zstd.level": _same("compression.zstd.level"),
    "delete.retention.ms": _same("log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": _same("log.segment.delete.delay.ms"),
    "flush.messages": _same("log.flush.interval.messages"),
    "flush.ms": (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
    "index.interval.bytes": _same("log.index.interval.bytes"),
    "local.retention.bytes": _same("log.local.retention.bytes"),
    "local.retention.ms": _same("log.local.retention.ms"),
    "max.compaction.lag.ms": _same("log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": _same("message.max.bytes"),
    "message.timestamp.after.max.ms": _same("log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": _same("log.message.timestamp.before.max.ms"),
    "message.timestamp.type": _same("log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": _same("log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": _same("log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": _same("min.insync.replicas"),
    "preallocate": _same("log.preallocate"),
    "retention.bytes": _same("log.retention.bytes"),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", MINUTE_MS),
        Synonym("log.retention.hours", HOUR_MS),
    ),
    "segment.bytes": _same("log.segment.bytes"),
    "segment.index.bytes": _same("log.index.size.max.bytes"),
    "segment.jitter.ms": (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", HOUR_MS)),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)),
    "unclean.leader.election.enable": _same("unclean.leader.election.enable"),
}


def topic_defaults(broker_values: Mapping[str, Value]) -> dict[str, Value]:
    """The value of every topic setting for a topic that sets none, from typed broker values.

    A broker setting that is absent from `broker_values`, or None there, leaves the word to the next synonym.
    """
    return {
        setting.name: _from_broker(setting, broker_values) for setting in TOPIC_SETTINGS if not setting.internal
    }


def effective_topic(
    broker_values: Mapping[str, Value], overrides: Mapping[str, str], defaults: Mapping[str, Value] | None = None
) -> dict[str, Value]:
    """The typed value of every topic setting of a topic that sets `overrides`.

    An internal.segment.bytes override takes the place of segment.bytes. Names that no setting has are passed over,
    since metadata written by a newer Kafka may hold them; `validate_topic` is where they are refused.
    """
    values = dict(defaults) if defaults is not None else topic_defaults(broker_values)
    for name, text in overrides.items():
        if name in TOPIC:
            values[name] = TOPIC[name].parse(text)
    segment_bytes = values.pop("internal.segment.bytes", None)
    if segment_bytes is not None:
        values["segment.bytes"] = segment_bytes
    return values


def validate_topic(
    overrides: Mapping[str, str],
    broker_values: Mapping[str, Value] | None = None,
    defaults: Mapping[str, Value] | None = None,
) -> None:
    """Raise SettingError, worded as Kafka does, unless `overrides` may all be set on a topic together.

    Whoever validates many topics gives their `topic_defaults` along.
    """
    for name in overrides:
        if name not in TOPIC:
            raise UnknownSetting("topic", name, TOPIC)
    broker_values = broker_values or {}
    values = effective_topic(broker_values, overrides, defaults)
    lag_ms_min, lag_ms_max = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(lag_ms_min, int)
    assert isinstance(lag_ms_max, int)
    if lag_ms_min > lag_ms_max:
        raise ConflictingSettings(
            f"conflict topic config setting min.compaction.lag.ms ({lag_ms_min}) > "
            f"max.compaction.lag.ms ({lag_ms_max})",
            name="min.compaction.lag.ms",
        )
    if values["remote.storage.enable"] and not broker_values.get("remote.log.storage.system.enable"):
        raise ConflictingSettings(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
            name="remote.storage.enable",
        )


def _from_broker(setting: Setting, broker_values: Mapping[str, Value]) -> Value:
    for synonym in SYNONYMS.get(setting.name, ()):
        value = broker_values.get(synonym.name)
        if value is not None:
            if synonym.factor != 1:
                assert isinstance(value, int)
                value *= synonym.factor
            # Kafka reads every negative retention as "no limit".
            if setting.name == "retention.ms" and isinstance(value, int) and value < 0:
                value = -1
            return value
    return setting.default_value
