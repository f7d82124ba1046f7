"""What every client has: addresses, connections, metadata, retries, metrics.

Where the kinds of clients differ in a default or in an importance, their own tables say so by `changed`.
"""

from collections.abc import Iterable
from dataclasses import replace

from ottla.metadata.settings.broker.metrics import METRICS_SETTINGS
from ottla.metadata.settings.definition import (
    ANY,
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    REQUIRED,
    STRING,
    Setting,
    Update,
    Value,
)
from ottla.metadata.settings.rule import ListOf, OneOf, Rule, at_least, one_of

_METRICS_RULE: dict[str, Rule] = {
    "metric.reporters": ListOf(),
    "metrics.num.samples": at_least(1),
    "metrics.recording.level": one_of("INFO", "DEBUG", "TRACE"),
    "metrics.sample.window.ms": at_least(0),
}

CONNECTION_SETTINGS: tuple[Setting, ...] = (
    Setting("bootstrap.servers", LIST, REQUIRED, HIGH, ListOf(empty=False),
            "Addresses of some brokers, host:port, from which the others are learned."),
    Setting("client.id", STRING, "", MEDIUM, ANY,
            "Name by which brokers know this client in logs, quotas and metrics; made up when empty."),
    Setting("client.dns.lookup", STRING, "use_all_dns_ips", MEDIUM,
            one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
            "Whether every address of a name is tried, or the first addresses are replaced by their full names."),
    Setting("connections.max.idle.ms", LONG, 540_000, MEDIUM, ANY,
            "Silence after which a connection is closed."),
    Setting("request.timeout.ms", INT, 30_000, MEDIUM, at_least(0),
            "How long an answer may take before the connection is given up."),
    Setting("socket.connection.setup.timeout.ms", LONG, 10_000, MEDIUM, ANY,
            "How long a connection may take to be established."),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30_000, MEDIUM, ANY,
            "Upper end to which that time grows after failures."),
    Setting("reconnect.backoff.ms", LONG, 50, LOW, at_least(0),
            "Pause before a broker that could not be reached is tried again."),
    Setting("reconnect.backoff.max.ms", LONG, 1000, LOW, at_least(0),
            "Upper end to which that pause grows."),
    Setting("retry.backoff.ms", LONG, 100, LOW, at_least(0),
            "Pause before a request that failed is sent again."),
    Setting("retry.backoff.max.ms", LONG, 1000, LOW, at_least(0),
            "Upper end to which that pause grows."),
    Setting("receive.buffer.bytes", INT, 65_536, MEDIUM, at_least(-1),
            "SO_RCVBUF of the sockets; -1 leaves the system's default."),
    Setting("send.buffer.bytes", INT, 131_072, MEDIUM, at_least(-1),
            "SO_SNDBUF of the sockets; -1 leaves the system's default."),
    Setting("metadata.max.age.ms", LONG, 300_000, LOW, at_least(0),
            "Age at which what is known of brokers and topics is asked for again, without need."),
    Setting("metadata.recovery.strategy", STRING, "rebootstrap", LOW,
            OneOf(("REBOOTSTRAP", "NONE"), ignore_case=True),
            "What to do when no known broker can be reached: begin again from bootstrap.servers, or give up."),
    Setting("metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, LOW, at_least(0),
            "How long no broker may answer for metadata before the client begins again from bootstrap.servers."),
    Setting("config.providers", LIST, (), LOW, ListOf(),
            "Java classes from which values of settings may be taken by reference."),
    Setting("enable.metrics.push", BOOLEAN, True, LOW, ANY,
            "Whether metrics are sent to the cluster where it has subscribed to them."),
    *(
        replace(setting, update=Update.READ_ONLY, valid=_METRICS_RULE[setting.name])
        for setting in METRICS_SETTINGS
        if setting.name in _METRICS_RULE
    ),
)


def changed(settings: Iterable[Setting], **defaults: Value) -> tuple[Setting, ...]:
    """The same settings with other defaults for some, whose names are given with underscores."""
    values = {name.replace("_", "."): value for name, value in defaults.items()}
    return tuple(
        replace(setting, default=values.get(setting.name, setting.default)) for setting in settings
    )
