"""What an app can be told besides its operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ottla.streams.errors import TopologyError
from ottla.streams.topic_name import check_topic

# Who asks for it, where it is not installed.
NEEDS_SPARK = "an app on Spark"
_CHECKPOINTS = "ottla-checkpoints"
_OWN = (
    "checkpoint",
    "dead_letters",
    "every",
    "guarantee",
    "master",
    "native",
    "partitions",
    "sink",
    "source",
    "spark",
    "starting",
    "updates",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """The settings of an app.

    checkpoint     where progress and state are kept: a directory, or an address that Spark can write to;
                   ottla-checkpoints/<name> here unless told
    dead_letters   the topic for records that cannot be read; without one they end the query
    starting       where a source begins that has no progress yet: earliest or latest
    every          how often a micro-batch begins: "1 second"; as soon as there is something to do unless told, or every
                   second where a processor has timers by the wall
    updates        of a table: "all" shows every change, "last" one a key and micro-batch
    partitions     into how many parts the state of each operator is divided; as many as Spark's shuffle partitions
    native         whether the one count that a topology has is left to Spark's own aggregation, which is faster
    guarantee      exactly-once or at-least-once
    master, spark  where Spark runs, and its settings
    source, sink   more options of the source and the sink `ottla`
    """

    name: str
    bootstrap_servers: str = ""
    checkpoint: str = ""
    dead_letters: str | None = None
    starting: str = "earliest"
    every: str | None = None
    updates: str = "all"
    partitions: int | None = None
    native: bool = False
    guarantee: str = "exactly-once"
    master: str | None = None
    spark: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    sink: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
    is_look: bool = False  # nothing is written and nothing is remembered of it

    @property
    def source_options(self) -> dict[str, str]:
        """What to tell the source `ottla`."""
        from ottla.client.settings.consumer import CONSUMER

        return {
            **({} if self.is_look else {"groupId": self.name}),
            "kafka.bootstrap.servers": self.bootstrap_servers,
            **{f"kafka.{name}": value for name, value in self.client.items() if name in CONSUMER},
            **self.source,
        }

    @property
    def sink_options(self) -> dict[str, str]:
        """What to tell the sink `ottla`."""
        from ottla.client.settings.producer import PRODUCER

        found = {"kafka.bootstrap.servers": self.bootstrap_servers, "guarantee": self.guarantee}
        if self.guarantee == "exactly-once":
            found["transactionalId"] = f"ottla-streams-{self.name}"
        found |= {f"kafka.{name}": value for name, value in self.client.items() if name in PRODUCER}
        return found | dict(self.sink)

    @property
    def admin_settings(self) -> dict[str, str]:
        """What to tell an admin client."""
        from ottla.client.settings.admin import ADMIN

        return {name: value for name, value in self.client.items() if name in ADMIN}


def app_settings(
    name: str, bootstrap_servers: str | Sequence[str] | None, given: Mapping[str, Any]
) -> AppSettings:
    """Return the settings that a program gave; TopologyError for those that cannot be.

    What is none of an app's own is a setting of Kafka's clients, with underscores for dots.
    """
    if not name or "/" in name:
        raise TopologyError(f"{name!r} is no name for an app: it is that of its group and its checkpoint")
    own = {key: value for key, value in given.items() if key in _OWN and value is not None}
    client = _client_settings({key: value for key, value in given.items() if key not in _OWN})
    _check(own)
    servers = bootstrap_servers or ""
    return AppSettings(
        name=name,
        bootstrap_servers=servers if isinstance(servers, str) else ",".join(servers),
        client=client,
        **{"checkpoint": f"{_CHECKPOINTS}/{name}", **own},
    )


def _client_settings(given: Mapping[str, Any]) -> dict[str, str]:
    if not given:
        return {}
    # Imported only where there are some: they are many, and a test of a topology needs none.
    from ottla.client.settings.consumer import CONSUMER
    from ottla.client.settings.producer import PRODUCER

    client = {}
    for key, value in given.items():
        setting = key.replace("_", ".")
        if setting not in CONSUMER and setting not in PRODUCER:
            known = [*_OWN, *(each.replace(".", "_") for each in {*CONSUMER, *PRODUCER})]
            near = get_close_matches(key, known, n=1)
            hint = (
                f"did you mean {near[0]}?"
                if near
                else f"an app has {', '.join(_OWN)}, and the settings of Kafka's clients"
            )
            raise TopologyError(f"an app has no setting {key}", hint=hint)
        client[setting] = str(value).lower() if isinstance(value, bool) else str(value)
    return client


def _check(own: Mapping[str, Any]) -> None:
    choices = {
        "starting": ("earliest", "latest"),
        "updates": ("all", "last"),
        "guarantee": ("exactly-once", "at-least-once"),
    }
    for key, allowed in choices.items():
        if key in own and own[key] not in allowed:
            raise TopologyError(f"{key} is {own[key]!r}", hint=f"it is {' or '.join(allowed)}")
    if "dead_letters" in own:
        check_topic(own["dead_letters"], "dead_letters")
    if not isinstance(own.get("native", False), bool):
        raise TopologyError(f"native is {own['native']!r}", hint="it is True or False")
    if "partitions" in own and (not isinstance(own["partitions"], int) or own["partitions"] < 1):
        raise TopologyError(f"partitions is {own['partitions']!r}", hint="it is a number, 1 or more")
