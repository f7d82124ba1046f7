"""From the command line to a client's settings.

C1  What is said more closely wins: -b and -X, then OTTLA_BOOTSTRAP, then the profile, then localhost:9092.
C2  A profile is for every kind of client, so each takes from it what it knows; -X is for the command at hand, and what
    its client does not know is refused.
"""

import argparse
from typing import Any

from ottla.cli.error import MISUSED, CommandError
from ottla.cli.profiles import Profile, chosen_profile
from ottla.world.shell import variable

DEFAULT_BOOTSTRAP = "localhost:9092"
EXAMPLE = "give HOST:PORT, as in localhost:9092"
SECURE = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
# A person waits for the answer, so it comes sooner than after Kafka's minute.
PATIENCE_MS = 15_000
PATIENT = {
    "admin": ("default.api.timeout.ms", "request.timeout.ms"),
    "consumer": ("default.api.timeout.ms", "request.timeout.ms"),
    "producer": ("max.block.ms",),
}


class Connection:
    """Where the cluster is, and how to talk to it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._profile: Profile = chosen_profile(options.profile)
        self._given = pairs("-X", [*options.first_settings, *options.settings])
        given = self._given.pop("bootstrap.servers", None)
        places = (
            ("-b", options.bootstrap),
            ("-X bootstrap.servers", given),
            # An empty variable is the same as none, as everywhere in a shell.
            ("OTTLA_BOOTSTRAP", variable("OTTLA_BOOTSTRAP") or None),
            ("the profile's bootstrap", self._profile.bootstrap),
            ("the profile's bootstrap.servers", self._profile.settings.get("bootstrap.servers")),
        )
        origin, text = next((each for each in places if each[1] is not None), ("", DEFAULT_BOOTSTRAP))
        self.bootstrap: str = addresses(origin, text or "")

    def settings(self, kind: str, **own: Any) -> dict[str, Any]:
        """Return the settings of a producer, consumer or admin client; `own` are the command's, with _ for dots.

        What the user says with -X counts more than what the command would choose.
        """
        from ottla.client.settings.resolve import TABLES

        known = TABLES[kind]
        everywhere = {name for table in TABLES.values() for name in table}
        found: dict[str, Any] = {"client.id": "ottla-cli"}
        found |= dict.fromkeys(PATIENT[kind], PATIENCE_MS)
        found |= {
            name: value
            for name, value in self._profile.settings.items()
            if name in known or name not in everywhere
        }
        found |= {name.replace("_", "."): value for name, value in own.items() if value is not None}
        found |= self._given
        if "default.api.timeout.ms" in self._given and "request.timeout.ms" not in self._given:
            # A whole call has no less time than one request of it.
            found["request.timeout.ms"] = found["default.api.timeout.ms"]
        return found


def addresses(origin: str, text: str) -> str:
    """Return a list of host:port; one may be written with its protocol, as brokers write their listeners.

    CommandError for what is no address of a broker; `origin` says who gave it.
    """
    found = [_address(origin, each.strip()) for each in text.split(",") if each.strip()]
    if not found:
        raise CommandError(f"{origin} is empty", EXAMPLE, exit_code=MISUSED)
    return ",".join(found)


def _address(origin: str, text: str) -> str:
    protocol, found, rest = text.partition("://")
    if not found:
        return text
    if protocol.upper() in ("HTTP", "HTTPS"):
        hint = f"a broker speaks Kafka's protocol and not HTTP: {EXAMPLE}"
        raise CommandError(f"{origin} is {text}, which is a web address", hint, exit_code=MISUSED)
    if protocol.upper() in SECURE:
        hint = "TLS and SASL are not there yet: give the address of a plaintext listener"
        raise CommandError(f"{origin} is {text}, which asks for security", hint, exit_code=MISUSED)
    return rest


def output_form(options: argparse.Namespace) -> str:
    """Return what -o says, or else the profile."""
    return options.output or chosen_profile(options.profile).output or "table"


def pairs(option: str, texts: list[str]) -> dict[str, str]:
    """Return the pairs behind `option key=value`."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise CommandError(f"{option} {text} is not key=value", exit_code=MISUSED)
        found[name.strip()] = value.strip()
    return found
