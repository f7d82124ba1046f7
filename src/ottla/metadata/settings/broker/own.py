"""Settings that only Ottla has. Their names begin with `ottla.`, so Kafka passes over them in a shared file."""

from ottla.metadata.settings.definition import ANY, HIGH, MEDIUM, STRING, Setting
from ottla.metadata.settings.rule import one_of

OWN_SETTINGS: tuple[Setting, ...] = (
    Setting("ottla.flush", STRING, "ack", HIGH, one_of("ack", "os"),
            "When a write is acknowledged: ack once it is on disk, os once the operating system has it, as Kafka "
            "does."),
    Setting("ottla.metrics.listener", STRING, None, MEDIUM, ANY,
            "host:port of the page with metrics; none when left out."),
)
