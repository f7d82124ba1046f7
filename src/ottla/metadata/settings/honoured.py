"""The settings that Ottla obeys today.

A name stands here exactly when code outside this package reads it; a tidy test compares the two. Any other setting that
Kafka knows is accepted and described, and draws a warning at start when it is given a value that is not its default.
"""

from ottla.metadata.settings.group import BOUNDS, GROUP_SYNONYMS
from ottla.metadata.settings.topic import SYNONYMS

HONOURED_TOPIC: frozenset[str] = frozenset(
    {
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "index.interval.bytes",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)

HONOURED_DIRECTLY: frozenset[str] = frozenset(
    {
        "advertised.listeners",
        "authorizer.class.name",
        "auto.create.topics.enable",
        "broker.id",
        "broker.rack",
        "broker.session.timeout.ms",
        "connections.max.idle.ms",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "cordoned.log.dirs",
        "default.replication.factor",
        "delete.topic.enable",
        "fetch.max.bytes",
        "group.consumer.assignors",
        "group.consumer.max.size",
        "group.consumer.migration.policy",
        "group.consumer.regex.refresh.interval.ms",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.max.size",
        "group.min.session.timeout.ms",
        "group.share.initialize.retry.interval.ms",
        "group.share.max.share.sessions",
        "group.share.max.size",
        "group.streams.max.size",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.enable",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.dir",
        "log.dirs",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "log.retention.check.interval.ms",
        "max.connections",
        "max.connections.per.ip",
        "max.incremental.fetch.session.cache.slots",
        "max.request.partition.size.limit",
        "metadata.log.dir",
        "metadata.log.max.record.bytes.between.snapshots",
        "metadata.log.max.snapshot.interval.ms",
        "metadata.log.segment.bytes",
        "metadata.log.segment.ms",
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
        "node.id",
        "num.partitions",
        "offset.metadata.max.bytes",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes",
        "offsets.topic.compression.codec",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        "ottla.flush",
        "ottla.metrics.listener",
        "process.roles",
        "producer.id.expiration.check.interval.ms",
        "producer.id.expiration.ms",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "replica.high.watermark.checkpoint.interval.ms",
        "security.inter.broker.protocol",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.segment.bytes",
        "socket.listen.backlog.size",
        "socket.request.max.bytes",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.max.timeout.ms",
        "transaction.partition.verification.enable",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.state.log.min.isr",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        "transaction.two.phase.commit.enable",
        "transactional.id.expiration.ms",
    }
)

HONOURED_GROUP: frozenset[str] = frozenset(
    {
        "consumer.assignment.interval.ms",
        "consumer.heartbeat.interval.ms",
        "consumer.session.timeout.ms",
        "share.assignment.interval.ms",
        "share.auto.offset.reset",
        "share.delivery.count.limit",
        "share.heartbeat.interval.ms",
        "share.isolation.level",
        "share.partition.max.record.locks",
        "share.record.lock.duration.ms",
        "share.renew.acknowledge.enable",
        "share.session.timeout.ms",
        "streams.assignment.interval.ms",
        "streams.heartbeat.interval.ms",
        "streams.initial.rebalance.delay.ms",
        "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    }
)

# A broker setting also counts when it gives the default of a topic or group setting that counts, or a bound of one.
HONOURED: frozenset[str] = (
    HONOURED_DIRECTLY
    | {synonym.name for name in HONOURED_TOPIC for synonym in SYNONYMS.get(name, ())}
    | {GROUP_SYNONYMS[name] for name in HONOURED_GROUP if name in GROUP_SYNONYMS}
    | {bound for name in HONOURED_GROUP for bound in BOUNDS.get(name, ())}
)
