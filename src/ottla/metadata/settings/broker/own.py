"""Settings that only Ottla has. Their names begin with `ottla.`, so Kafka passes over them in a shared file."""

from ottla.metadata.settings.definition import ANY, HIGH, INT, MEDIUM, STRING, Setting
from ottla.metadata.settings.rule import at_least, one_of

OWN_SETTINGS: tuple[Setting, ...] = (
    Setting("ottla.flush", STRING, "ack", HIGH, one_of("ack", "os"),
            "When a write is acknowledged: ack once it is on disk, os once the operating system has it, as Kafka "
            "does."),
    Setting("ottla.broker.silence.ms", INT, 2000, MEDIUM, at_least(1),
            "Silence after which the controller takes a broker for gone whose heartbeats come four times as often; "
            "others have longer, up to broker.session.timeout.ms."),
    Setting("ottla.broker.disconnect.grace.ms", INT, 250, MEDIUM, at_least(0),
            "How late the next heartbeat of a broker may be whose connection to the controller has closed."),
    Setting("ottla.metrics.listener", STRING, None, MEDIUM, ANY,
            "host:port of the page with metrics; none when left out."),
)
