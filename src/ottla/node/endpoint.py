"""Listeners: name://host:port, and the security protocol behind each name."""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.metadata.settings.error import InvalidValue
from ottla.world.network import host_name

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_FORM = "name://host:port, with an empty host for every interface"


class SecurityProtocol(enum.IntEnum):
    """What is spoken on a listener; the numbers are those of Kafka's metadata records."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A place to listen or to connect to. An empty host stands for every interface."""

    name: str
    protocol: SecurityProtocol
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    def bound(self, ports: Mapping[str, int]) -> "Endpoint":
        """The port that was bound, and the machine's name, where the settings leave the choice to the system."""
        return Endpoint(self.name, self.protocol, self.host or host_name(), self.port or ports[self.name])


def parse_endpoints(
    setting: str, entries: tuple[str, ...], protocols: Mapping[str, SecurityProtocol], *, distinct_ports: bool
) -> tuple[Endpoint, ...]:
    """The endpoints of `listeners` or `advertised.listeners`; InvalidValue names the entry that is wrong."""
    found: list[Endpoint] = []
    for entry in entries:
        match = _LISTENER.fullmatch(entry)
        if not match or int(match[3]) > 65535:
            raise InvalidValue(setting, entry, "not a listener", _FORM)
        name = match[1].upper()
        if name not in protocols:
            raise InvalidValue(
                setting,
                entry,
                f"No security protocol defined for listener {name}",
                ", ".join(protocols),
                hint=f"add {name}:PLAINTEXT to listener.security.protocol.map",
            )
        endpoint = Endpoint(name, protocols[name], match[2], int(match[3]))
        if any(other.name == name for other in found):
            raise InvalidValue(setting, entry, "Each listener must have a different name", _FORM)
        if distinct_ports and any(_collide(other, endpoint) for other in found):
            raise InvalidValue(setting, entry, "Each listener must have a different port", _FORM)
        found.append(endpoint)
    return tuple(found)


def parse_protocol_map(setting: str, text: str) -> dict[str, SecurityProtocol]:
    """Listener names, in capitals, with their protocols, from NAME:PROTOCOL pairs."""
    protocols: dict[str, SecurityProtocol] = {}
    allowed = ", ".join(SecurityProtocol.__members__)
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip() for part in pair.rpartition(":"))
        if not name or protocol not in SecurityProtocol.__members__:
            raise InvalidValue(setting, pair, "not a pair of listener name and security protocol", allowed)
        protocols[name.upper()] = SecurityProtocol[protocol]
    return protocols


def parse_address(setting: str, text: str) -> tuple[str, int]:
    """Host and port of host:port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidValue(setting, text, "not an address", "host:port")
    return host.strip("[]"), int(port)


def _collide(one: Endpoint, other: Endpoint) -> bool:
    if one.port == 0 or one.port != other.port:
        return False
    # IPv4 and IPv6 have ports of their own.
    return not (one.host and other.host and (":" in one.host) != (":" in other.host))
