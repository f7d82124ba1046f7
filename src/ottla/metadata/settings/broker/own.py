"""Settings that only Ottla has. Their names begin with `ottla.`, so Kafka passes over them in a shared file."""

from ottla.metadata.settings.definition import ANY, HIGH, INT, LONG, MEDIUM, STRING, Setting
from ottla.metadata.settings.rule import at_least, one_of

OWN_SETTINGS: tuple[Setting, ...] = (
    Setting("ottla.flush", STRING, "ack", HIGH, one_of("ack", "os"),
            "When a write is acknowledged: ack once it is on disk, os once the operating system has it, as Kafka "
            "does."),
    Setting("ottla.broker.silence.ms", INT, 2000, MEDIUM, at_least(1),
            "Silence after which the controller takes a broker for gone whose heartbeats come four times as often; "
            "others have longer, up to broker.session.timeout.ms. Where that is raised above its default and this is "
            "not set, only the session counts."),
    Setting("ottla.broker.disconnect.grace.ms", INT, 250, MEDIUM, at_least(0),
            "How late the next heartbeat of a broker may be whose connection to the controller has closed. Where "
            "broker.session.timeout.ms is raised above its default and this is not set, a close does not count."),
    Setting("ottla.max.decompressed.message.bytes", INT, 128 << 20, MEDIUM, at_least(1),
            "The most bytes that a compressed batch of a producer may hold; a larger one is refused with "
            "MESSAGE_TOO_LARGE."),
    Setting("ottla.max.message.records", INT, 1 << 20, MEDIUM, at_least(1),
            "The most records that a compressed batch of a producer may hold; one with more is refused with "
            "MESSAGE_TOO_LARGE."),
    Setting("ottla.answer.bytes.max", LONG, 268_435_456, MEDIUM, at_least(16 << 20),
            "Bytes of answers held at most for clients that have not taken them yet, over all connections of the "
            "client listeners, and as much again of the controller's. A fetch is given a sixteenth of it at most, less "
            "the more connections there are that have not taken theirs; once it is used up, requests wait for their "
            "turn, and a client that has taken nothing for some seconds is closed."),
    Setting("ottla.metrics.listener", STRING, None, MEDIUM, ANY,
            "host:port of the node's metrics, health and readiness (/metrics, /health, /ready); none when left out."),
)
