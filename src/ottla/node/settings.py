"""What a node was told: Kafka's properties, checked and typed.

Laws
1  A name that nobody knows, a value that is not allowed, and values that contradict each other stop the start, with a
   SettingError that says the name, the value, what is allowed, and often a hint.
2  What Kafka knows and Ottla does not obey yet is taken, and named once in `warnings` if it is not the default.
3  Nothing here reads a file or the environment: `Settings.from_properties` takes the pairs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ottla.controller.session import warnings as session_warnings
from ottla.metadata.settings.broker import (
    BROKER,
    DYNAMIC_ONLY,
    OPEN_PREFIXES,
    broker_setting,
    listener_setting,
)
from ottla.metadata.settings.broker.replication import RACK_AWARE_SELECTOR
from ottla.metadata.settings.error import ConflictingSettings, InvalidValue, SettingError, closest
from ottla.metadata.settings.group import validate_group_defaults
from ottla.metadata.settings.honoured import HONOURED
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.settings.topic import validate_topic
from ottla.node.endpoint import (
    Endpoint,
    SecurityProtocol,
    parse_address,
    parse_endpoints,
    parse_protocol_map,
)

_ANY_HOST = "0.0.0.0"
_DEFAULT_CONTROLLER_PORT = 9093


class Settings(Mapping[str, Any]):
    """Typed values by Kafka's names, and what follows from them: roles, endpoints, directories, voters."""

    __slots__ = (
        "advertised",
        "advertised_controllers",
        "bootstrap_servers",
        "broker_values",
        "controller_names",
        "inter_broker_name",
        "listeners",
        "log_dirs",
        "metadata_log_dir",
        "metrics_address",
        "node_id",
        "protocols",
        "roles",
        "voters",
        "warnings",
    )

    def __init__(self, values: BrokerValues) -> None:
        self.broker_values = values
        self.warnings = tuple(_warnings(values))
        self.node_id: int = self["node.id"]
        self.roles: frozenset[str] = frozenset(self["process.roles"])
        self.controller_names: tuple[str, ...] = tuple(
            name.upper() for name in self["controller.listener.names"]
        )
        self.protocols = self._protocol_map()
        self.listeners = parse_endpoints("listeners", self["listeners"], self.protocols, distinct_ports=True)
        self.advertised = self._advertised_brokers()
        self.advertised_controllers = self._advertised_controllers()
        self.inter_broker_name = self._inter_broker_name()
        self.log_dirs: tuple[str, ...] = tuple(_trim(path) for path in self["log.dirs"] or self["log.dir"])
        self.metadata_log_dir: str = _trim(self["metadata.log.dir"] or self.log_dirs[0])
        self.voters = _voters(self["controller.quorum.voters"])
        self.bootstrap_servers = tuple(
            parse_address("controller.quorum.bootstrap.servers", server.rpartition("://")[2])
            for server in self["controller.quorum.bootstrap.servers"]
        )
        metrics: str | None = self["ottla.metrics.listener"]
        self.metrics_address = parse_address("ottla.metrics.listener", metrics) if metrics else None
        self._check_together()
        self._check_served()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "Settings":
        """Check names and values of a properties file, with whatever overrides were laid over it."""
        texts = dict(properties)
        for one, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if one in texts:
                texts.setdefault(other, texts[one])
        for name, text in texts.items():
            setting = BROKER.get(name)
            if name in DYNAMIC_ONLY:
                raise ConflictingSettings(
                    f"{name} cannot be set in a properties file",
                    name=name,
                    hint="change it on the running broker with kafka-configs",
                )
            if setting is not None:
                setting.parse(text)
            elif not name.startswith(OPEN_PREFIXES):
                raise SettingError(
                    f"Unknown setting {name}={text}",
                    name=name,
                    allowed="the broker settings of Apache Kafka, and those that begin with ottla.",
                    hint=closest(name, BROKER) or "docs/reference/settings.md lists every setting",
                )
        for setting in BROKER.values():
            if setting.required and setting.name not in texts:
                raise SettingError(
                    f'Missing required configuration "{setting.name}" which has no default value.',
                    name=setting.name,
                    allowed=setting.allowed,
                    hint=_HINTS.get(setting.name, ""),
                )
        return cls(BrokerValues(texts))

    def __getitem__(self, name: str) -> Any:
        return self.broker_values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.broker_values)

    def __len__(self) -> int:
        return len(self.broker_values)

    @property
    def is_broker(self) -> bool:
        """True when this node keeps partitions and serves clients."""
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        """True when this node has a voice in the metadata quorum."""
        return "controller" in self.roles

    @property
    def broker_listeners(self) -> tuple[Endpoint, ...]:
        """Where clients and other brokers connect to."""
        return tuple(each for each in self.listeners if each.name not in self.controller_names)

    @property
    def controller_listeners(self) -> tuple[Endpoint, ...]:
        """Where the quorum speaks."""
        return tuple(each for each in self.listeners if each.name in self.controller_names)

    @property
    def directories(self) -> tuple[str, ...]:
        """Every directory that holds data or metadata, sorted, each once."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))

    def _protocol_map(self) -> dict[str, SecurityProtocol]:
        name = "listener.security.protocol.map"
        protocols = parse_protocol_map(name, self[name])
        if name not in self.broker_values.static:
            # As Kafka: with nothing but PLAINTEXT in use, a controller's listener needs no entry of its own.
            used = {entry.partition(":")[0].upper() for entry in self["listeners"]} | set(
                self.controller_names
            )
            if not used & {"SSL", "SASL_SSL", "SASL_PLAINTEXT"}:
                for controller in self.controller_names:
                    protocols.setdefault(controller, SecurityProtocol.PLAINTEXT)
        return protocols

    def _advertised(self) -> tuple[Endpoint, ...] | None:
        entries = self["advertised.listeners"]
        if entries is None:
            return None
        return parse_endpoints("advertised.listeners", entries, self.protocols, distinct_ports=False)

    def _advertised_brokers(self) -> tuple[Endpoint, ...]:
        """What clients are told. An empty host is for the node to fill in with the machine's name."""
        advertised = self._advertised()
        chosen = self.listeners if advertised is None else advertised
        found = tuple(each for each in chosen if each.name not in self.controller_names)
        for endpoint in found:
            if endpoint.host == _ANY_HOST:
                raise InvalidValue(
                    "advertised.listeners",
                    endpoint,
                    "clients cannot connect to the address of every interface",
                    "an address that clients can reach",
                    hint=f"advertised.listeners={endpoint.name}://localhost:{endpoint.port}",
                )
        return found

    def _advertised_controllers(self) -> tuple[Endpoint, ...]:
        advertised = {each.name: each for each in self._advertised() or ()}
        listening = {each.name: each for each in self.listeners}
        found = [advertised.get(name) or listening.get(name) for name in self.controller_names]
        return tuple(
            replace(each, host="") if each.host == _ANY_HOST else each for each in found if each is not None
        )

    def _inter_broker_name(self) -> str:
        name: str | None = self["inter.broker.listener.name"]
        if name is None:
            return str(self["security.inter.broker.protocol"])
        if "security.inter.broker.protocol" in self.broker_values.static:
            raise ConflictingSettings(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
                name="inter.broker.listener.name",
            )
        return name.upper()

    def _check_together(self) -> None:
        values = self.broker_values
        if self.node_id != self["broker.id"]:
            raise _conflict("broker.id", "You must set `node.id` to the same value as `broker.id`.")
        validate_topic({}, values)
        validate_group_defaults(values)
        if "classic" not in self["group.coordinator.rebalance.protocols"]:
            raise _conflict(
                "group.coordinator.rebalance.protocols",
                "Disabling the 'classic' protocol is not supported.",
                hint="group.coordinator.rebalance.protocols=classic,consumer,streams",
            )
        for name, low in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
            if self[name] is not None and self[name] < low:
                raise _conflict(name, f"{name} must be greater than or equal to {low}")
        for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
            if self[name] == 0:
                raise _conflict(name, f"{name} must be unlimited (-1) or, greater than or equal to 1")
        if 0 < self["queued.max.request.bytes"] < self["socket.request.max.bytes"]:
            raise _conflict(
                "queued.max.request.bytes",
                "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
            )
        problem = cordoned_problem(self["cordoned.log.dirs"], self.log_dirs)
        if problem is not None:
            raise _conflict("cordoned.log.dirs", problem)
        self._check_quorum()
        if self.is_broker:
            self._check_broker_listeners()

    def _check_quorum(self) -> None:
        if not self.voters and not self["controller.quorum.bootstrap.servers"]:
            raise _conflict(
                "controller.quorum.bootstrap.servers",
                "one of controller.quorum.bootstrap.servers and controller.quorum.voters must say where the "
                "controllers are",
                hint=f"controller.quorum.bootstrap.servers=localhost:{_DEFAULT_CONTROLLER_PORT}",
            )
        if self.is_controller:
            if self.voters and self.node_id not in self.voters:
                raise _conflict(
                    "controller.quorum.voters",
                    f"the controller {self.node_id} is not among controller.quorum.voters",
                )
            missing = set(self.controller_names) - {each.name for each in self.listeners}
            if missing:
                raise _conflict(
                    "controller.listener.names",
                    f"controller.listener.names has {', '.join(sorted(missing))}, which is not in listeners",
                    hint=f"add {min(missing)}://:{_DEFAULT_CONTROLLER_PORT} to listeners",
                )
        elif self.node_id in self.voters:
            raise _conflict("controller.quorum.voters", f"node {self.node_id} is no controller but a voter")

    def _check_broker_listeners(self) -> None:
        names = [each.name for each in self.advertised]
        if not names:
            raise _conflict(
                "listeners",
                "There must be at least one broker advertised listener. "
                "Perhaps all listeners appear in controller.listener.names?",
            )
        if self.inter_broker_name not in names:
            raise _conflict(
                "inter.broker.listener.name",
                f"brokers are to use the listener {self.inter_broker_name} among themselves, which is not advertised",
                allowed=", ".join(names),
                hint=f"inter.broker.listener.name={names[0]}",
            )
        unknown = set(names) - {each.name for each in self.listeners}
        if unknown:
            raise _conflict(
                "advertised.listeners", f"{', '.join(sorted(unknown))} is advertised but not in listeners"
            )

    def _check_served(self) -> None:
        """Refuse what would otherwise be served otherwise than asked: unsafely, or not at all."""
        for endpoint in self.listeners:
            if endpoint.protocol is not SecurityProtocol.PLAINTEXT:
                raise InvalidValue(
                    "listeners",
                    endpoint,
                    f"Ottla does not speak {endpoint.protocol.name} yet",
                    "PLAINTEXT listeners",
                )
        if self["authorizer.class.name"]:
            raise InvalidValue(
                "authorizer.class.name",
                self["authorizer.class.name"],
                "Ottla does not check ACLs yet, and would let everybody in",
                "nothing",
            )
        if self["replica.selector.class"] not in (None, RACK_AWARE_SELECTOR):
            raise InvalidValue(
                "replica.selector.class",
                self["replica.selector.class"],
                "Ottla has no such selector",
                f"nothing, or {RACK_AWARE_SELECTOR}",
            )


_HINTS = {
    "node.id": "node.id=1",
    "process.roles": "process.roles=broker,controller",
    "controller.listener.names": "controller.listener.names=CONTROLLER",
}


def _warnings(values: BrokerValues) -> Iterator[str]:
    for name, text in values.static.items():
        setting = broker_setting(name)
        is_default = setting is not None and setting.parse(text) == setting.default_value
        if is_default or name in HONOURED or listener_setting(name) == "max.connections":
            continue
        shown = "[hidden]" if setting is None or setting.sensitive else text.strip()
        yield f"{name}={shown} is not honoured yet and has no effect"
    yield from session_warnings(values)


def cordoned_problem(cordoned: tuple[str, ...], log_dirs: tuple[str, ...]) -> str | None:
    """What is wrong with `cordoned.log.dirs`, in Kafka's words; None when nothing is."""
    if "*" in cordoned:
        others = len(cordoned) > 1
        return "When cordoned.log.dirs is set to *, it must not contain other values" if others else None
    missing = [path for path in cordoned if _trim(path) not in log_dirs]
    if not missing:
        return None
    return (
        "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
        f"{', '.join(missing)}"
    )


def _voters(entries: tuple[str, ...]) -> dict[int, tuple[str, int]]:
    voters = {}
    for entry in entries:
        voter, _, address = entry.partition("@")
        voters[int(voter)] = parse_address("controller.quorum.voters", address)
    return voters


def _trim(path: str) -> str:
    return path.rstrip("/") or "/"


def _conflict(name: str, message: str, *, allowed: str = "", hint: str = "") -> ConflictingSettings:
    return ConflictingSettings(message, name=name, allowed=allowed, hint=hint)
