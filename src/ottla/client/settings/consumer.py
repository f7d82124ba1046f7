"""The settings of a consumer and a share consumer."""

from dataclasses import replace

from ottla.client.settings.connection import CONNECTION_SETTINGS
from ottla.client.settings.rule import ConsumerOffsetReset, QuietlyOneOf
from ottla.client.settings.security import SECURITY_SETTINGS
from ottla.metadata.settings.definition import (
    ANY,
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LOW,
    MEDIUM,
    STRING,
    Setting,
    by_name,
)
from ottla.metadata.settings.rule import ListOf, NonEmpty, OneOf, at_least, one_of

CONSUMER_SETTINGS: tuple[Setting, ...] = (
    Setting("key.deserializer", CLASS, None, HIGH, ANY,
            "What is made of a key's bytes; they stay bytes without one."),
    Setting("value.deserializer", CLASS, None, HIGH, ANY,
            "What is made of a value's bytes; they stay bytes without one."),
    Setting("group.id", STRING, None, HIGH, ANY,
            "Group whose members share the partitions, and whose offsets are committed."),
    Setting("group.instance.id", STRING, None, MEDIUM, NonEmpty(),
            "Name of this member across restarts, which spares the group a rebalance."),
    Setting("group.protocol", STRING, "classic", HIGH, OneOf(("CONSUMER", "CLASSIC"), ignore_case=True),
            "Who assigns partitions: a member (classic) or the broker (consumer)."),
    Setting("group.remote.assignor", STRING, None, MEDIUM, ANY,
            "Assignor of the broker's that the group should use; the broker chooses without one."),
    Setting("partition.assignment.strategy", LIST, ("range", "cooperative-sticky"), MEDIUM, ListOf(),
            "Assignors of the classic protocol, the preferred first: names or objects."),
    Setting("session.timeout.ms", INT, 45_000, HIGH, ANY,
            "Silence after which a member of the classic protocol is taken for dead."),
    Setting("heartbeat.interval.ms", INT, 3000, HIGH, ANY,
            "How often a member of the classic protocol says that it lives."),
    Setting("max.poll.interval.ms", INT, 300_000, MEDIUM, at_least(1),
            "How long a member may go without asking for records before it leaves its group."),
    Setting("max.poll.records", INT, 500, MEDIUM, at_least(1),
            "Most records that one poll returns."),
    Setting("auto.offset.reset", STRING, "latest", MEDIUM, ConsumerOffsetReset(),
            "Where to begin in a partition without a committed offset, or none that still exists."),
    Setting("enable.auto.commit", BOOLEAN, True, MEDIUM, ANY,
            "Whether offsets are committed from time to time without being asked to."),
    Setting("auto.commit.interval.ms", INT, 5000, LOW, at_least(0),
            "How often that is done."),
    Setting("isolation.level", STRING, "read_uncommitted", MEDIUM, one_of("read_committed", "read_uncommitted"),
            "Whether records of open and aborted transactions are handed out."),
    Setting("fetch.min.bytes", INT, 1, HIGH, at_least(0),
            "Bytes for which a fetch waits at the broker."),
    Setting("fetch.max.wait.ms", INT, 500, LOW, at_least(0),
            "How long it waits for them at most."),
    Setting("fetch.max.bytes", INT, 52_428_800, MEDIUM, at_least(0),
            "Most bytes of records in one fetch answer; a larger batch comes alone."),
    Setting("max.partition.fetch.bytes", INT, 1_048_576, HIGH, at_least(0),
            "Most bytes of one partition in one fetch answer; a larger batch comes alone."),
    Setting("check.crcs", BOOLEAN, True, LOW, ANY,
            "Whether the checksums of batches are checked."),
    Setting("client.rack", STRING, "", LOW, ANY,
            "Where this client is, so that it may read from a replica near by."),
    Setting("allow.auto.create.topics", BOOLEAN, True, MEDIUM, ANY,
            "Whether a topic that is subscribed to and does not exist may be created by the broker."),
    Setting("exclude.internal.topics", BOOLEAN, True, MEDIUM, ANY,
            "Whether a pattern passes over the topics that brokers keep for themselves."),
    Setting("default.api.timeout.ms", INT, 60_000, MEDIUM, at_least(0),
            "How long a call without a timeout of its own may take."),
    Setting("interceptor.classes", LIST, (), LOW, ListOf(),
            "Objects that see records before they are handed out, and offsets after they are committed."),
    Setting("share.acknowledgement.mode", STRING, "implicit", MEDIUM, one_of("implicit", "explicit"),
            "Whether records of a share group count as accepted by the next poll, or must be acknowledged one by one."),
    Setting("share.acquire.mode", STRING, "BATCH_OPTIMIZED", MEDIUM,
            QuietlyOneOf(("batch_optimized", "record_limit")),
            "Whether a share consumer takes whole batches, or exactly as many records as max.poll.records."),
    *(
        replace(setting, importance=LOW) if setting.name == "client.id" else setting
        for setting in CONNECTION_SETTINGS
    ),
    *SECURITY_SETTINGS,
)

CONSUMER: dict[str, Setting] = by_name(CONSUMER_SETTINGS)
