"""What Kafka knows but does not document, what can only be set on a running broker, and open-ended prefixes."""

from ottla.metadata.settings.definition import (
    ANY,
    BOOLEAN,
    DOUBLE,
    HIGH,
    INT,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    STRING,
    Setting,
    Update,
)
from ottla.metadata.settings.rule import at_least

INTERNAL_SETTINGS: tuple[Setting, ...] = (
    Setting("controller.performance.always.log.threshold.ms", LONG, 2000, MEDIUM, at_least(0),
            "Duration of a controller event above which Kafka logs it.", internal=True),
    Setting("controller.performance.sample.period.ms", LONG, 60_000, MEDIUM, at_least(100),
            "How often Kafka logs the controller's performance.", internal=True),
    Setting("group.consumer.regex.refresh.interval.ms", INT, 600_000, MEDIUM, at_least(10_000),
            "How often a subscription by pattern is matched against the topics again.", internal=True),
    Setting("group.share.initialize.retry.interval.ms", INT, 30_000, LOW, at_least(1),
            "Pause before the state of a share partition is initialised again.", internal=True),
    Setting("group.share.persister.class.name", STRING,
            "org.apache.kafka.server.share.persister.DefaultStatePersister", MEDIUM, ANY,
            "Java class that keeps the state of share groups.", internal=True),
    Setting("internal.metadata.delete.delay.millis", LONG, 60_000, LOW, ANY,
            "How long a deleted segment of the metadata log stays on disk.", internal=True),
    Setting("internal.metadata.log.segment.bytes", INT, None, LOW, ANY,
            "Replaces metadata.log.segment.bytes without its lower bound; for tests.", internal=True),
    Setting("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, LOW, ANY,
            "Largest batch of the metadata log.", internal=True),
    Setting("log.initial.task.delay.ms", LONG, 30_000, LOW, at_least(0),
            "Pause after the start before logs are looked after.", internal=True),
    Setting("producer.id.expiration.check.interval.ms", INT, 600_000, LOW, at_least(1),
            "How often expired producer ids are looked for.", internal=True),
    Setting("remote.log.index.file.cache.ttl.ms", LONG, 900_000, LOW, at_least(1),
            "How long an unused index of a remote segment is cached.", internal=True),
    Setting("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, LOW, at_least(1),
            "Longest pause before failed remote work is tried again.", internal=True),
    Setting("remote.log.manager.task.retry.backoff.ms", LONG, 500, LOW, at_least(1),
            "First pause before failed remote work is tried again.", internal=True),
    Setting("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, LOW, ANY,
            "Random part of that pause.", internal=True),
    Setting("server.max.startup.time.ms", LONG, LONG_MAX, MEDIUM, at_least(0),
            "How long a start may take.", internal=True),
    Setting("unclean.leader.election.interval.ms", LONG, 300_000, MEDIUM, at_least(1),
            "How often partitions without a leader are looked at for an unclean election.", internal=True),
    Setting("unstable.api.versions.enable", BOOLEAN, False, HIGH, ANY,
            "Whether API versions still in development are offered.", internal=True),
    Setting("unstable.feature.versions.enable", BOOLEAN, False, HIGH, ANY,
            "Whether feature levels still in development may be used.", internal=True),
)

DYNAMIC_SETTINGS: tuple[Setting, ...] = (
    Setting("follower.replication.throttled.rate", LONG, LONG_MAX, MEDIUM, at_least(0),
            "Bytes a second that throttled followers may take.", update=Update.CLUSTER_WIDE),
    Setting("leader.replication.throttled.rate", LONG, LONG_MAX, MEDIUM, at_least(0),
            "Bytes a second that throttled leaders may give.", update=Update.CLUSTER_WIDE),
    Setting("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, MEDIUM, at_least(0),
            "Bytes a second with which replicas move between directories.", update=Update.CLUSTER_WIDE),
)

# Names that begin so belong to a plug-in or a listener, and cannot be listed.
OPEN_PREFIXES: tuple[str, ...] = ("listener.name.", "config.providers.", "rsm.config.", "rlmm.config.", "metrics.jmx.")
