"""What a user may say about a write, checked before anything is planned.

O1  An option that is not known is refused, with the nearest that is; Spark's own, as `checkpointLocation`, are known.
O2  Names beginning with `kafka.` are settings of a producer and are checked as such.
O3  What would undo the guarantee that was asked for is refused.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.settings.honoured import EVERYBODYS
from ottla.client.settings.producer import PRODUCER
from ottla.client.settings.resolve import ClientSettings, resolve
from ottla.metadata.settings.error import SettingError, closest
from ottla.spark.sink.refusal import LOGGER, OptionError

_KAFKA = "kafka."
_SETTINGS = "docs/reference/client-settings.md lists all there are"
# A batch is as large as a topic takes by default, so that there are few.
_BATCH_BYTES = 900_000
# A transaction takes as long as writing what is at hand does. When a driver dies meanwhile, readers wait for so long.
_TIMEOUT_MS = 60_000
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_MISSING_MARKER = re.compile(r"fail|write|(write|skip):\d+", re.ASCII)
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|)", re.ASCII)

OWN = {
    "topic": "topic",
    "guarantee": "guarantee",
    "portable": "portable",
    "transactionalid": "transactionalId",
    "transactiontimeout": "transactionTimeout",
    "queryid": "queryId",
    "batchid": "batchId",
    "missingmarker": "missingMarker",
    "plannedms": "plannedMs",
}
"""The sink's own options, by their names in small letters."""
_SPARKS = {"checkpointlocation", "path", "queryname", "includeheaders"}
_REFUSED = {
    "transactional.id": "set the option transactionalId",
    "transaction.timeout.ms": "set the option transactionTimeout",
    "transaction.two.phase.commit.enable": "leave it out: the driver ends the transaction itself",
    "key.serializer": "keys are columns of string or binary: cast them, or encode them with a function of Spark's",
    "value.serializer": "values are columns of string or binary: cast them, or encode them with a function of Spark's",
    "interceptor.classes": "change rows with Spark's own functions",
    "partitioner.class": "give the rows a column partition",
}

_OBEYED = EVERYBODYS | {
    "acks",
    "batch.size",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "enable.idempotence",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "metadata.max.idle.ms",
    "partitioner.ignore.keys",
    "retries",
}


class Guarantee(enum.Enum):
    """How often a row may be written when something fails."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of one write, which travel to its tasks."""

    kafka: Mapping[str, str]
    topic: str | None = None
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    is_portable: bool = False
    transactional_id: str | None = None
    transaction_timeout_ms: int | None = None
    query_id: str | None = None
    batch_id: int | None = None
    checkpoint: str | None = None
    missing_marker: str = "fail"
    planned_ms: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SinkOptions":
        """Return what these options say; OptionError says what is wrong with them."""
        kafka: dict[str, str] = {}
        own: dict[str, str] = {}
        for name, value in given.items():
            small = name.lower()
            if small.startswith(_KAFKA):
                kafka[small.removeprefix(_KAFKA)] = value
            elif small in OWN or small in _SPARKS:
                own[small] = value
            else:
                raise OptionError(f"the sink has no option {name}", hint=_near(name))
        if "bootstrap.servers" not in kafka:
            hint = "give the address of a broker, as in localhost:9092"
            raise OptionError("option kafka.bootstrap.servers is missing", hint=hint)
        for name in kafka.keys() & _REFUSED.keys():
            raise OptionError(f"the sink does not take kafka.{name}", hint=_REFUSED[name])
        timeout = own.get("transactiontimeout")
        made = cls(
            kafka=kafka,
            topic=own.get("topic"),
            guarantee=_guarantee(own.get("guarantee")),
            is_portable=_flag("portable", own.get("portable", "false")),
            transactional_id=own.get("transactionalid"),
            transaction_timeout_ms=None if timeout is None else _duration_ms("transactionTimeout", timeout),
            query_id=own.get("queryid"),
            batch_id=None if "batchid" not in own else _batch_id(own["batchid"]),
            missing_marker=_missing_marker(own.get("missingmarker", "fail")),
            planned_ms=None if "plannedms" not in own else _planned_ms(own["plannedms"]),
            checkpoint=own.get("checkpointlocation"),
        )
        made._check()
        return made

    def _check(self) -> None:
        needed = {"acks": ("all", "-1"), "enable.idempotence": ("true",)} if self.is_exactly_once else {}
        for name, allowed in needed.items():
            if self.kafka.get(name, allowed[0]).strip().lower() not in allowed:
                raise OptionError(
                    f"a transaction needs kafka.{name}={allowed[0]}",
                    hint="leave it out, or set guarantee to at-least-once",
                )
        try:
            self.settings("any" if self.is_exactly_once else None)
        except SettingError as error:
            hint = error.hint or (f"it is {error.allowed}" if error.allowed else _SETTINGS)
            raise OptionError(f"option kafka.{error.name}: {error}", hint=hint) from None
        idle = sorted(self.kafka.keys() - _OBEYED - _REFUSED.keys())
        if idle:
            LOGGER.warning("without effect in Spark: %s", ", ".join(f"kafka.{name}" for name in idle))
        if self.guarantee is Guarantee.AT_LEAST_ONCE:
            given = {
                "portable": self.is_portable,
                "transactionalId": self.transactional_id,
                "transactionTimeout": self.transaction_timeout_ms,
            }
            for name in [name for name, value in given.items() if value]:
                raise OptionError(
                    f"option {name} is for transactions, and guarantee is at-least-once",
                    hint="leave it out, or set guarantee to exactly-once",
                )

    @property
    def is_exactly_once(self) -> bool:
        """Whether rows are written in transactions."""
        return self.guarantee is Guarantee.EXACTLY_ONCE

    def settings(self, transactional_id: str | None = None, timeout_ms: int | None = None) -> ClientSettings:
        """Return the settings of a producer with these options, and with transactions if it has an id."""
        more: dict[str, object] = {}
        if transactional_id is not None:
            more["transactional.id"] = transactional_id
            if timeout_ms is not None:
                more["transaction.timeout.ms"] = timeout_ms
        if "compression.type" not in self.kafka:
            more["compression.type"] = "none"
        return resolve("producer", None, {**self.kafka, **more})

    @property
    def timeout_ms(self) -> int:
        """How long a transaction may stay open."""
        return self.transaction_timeout_ms or _TIMEOUT_MS

    @property
    def batch_bytes(self) -> int:
        """How large a batch of records may become."""
        settings = self.settings()
        size: int = settings["batch.size"] if "batch.size" in settings.given else _BATCH_BYTES
        most: int = settings["max.request.size"]
        return max(1, min(size, most))


def _guarantee(text: str | None) -> Guarantee:
    try:
        return Guarantee.EXACTLY_ONCE if text is None else Guarantee(text.strip().lower().replace("_", "-"))
    except ValueError:
        known = [each.value for each in Guarantee]
        raise OptionError(f"option guarantee is {text!r}", hint=f"it is {' or '.join(known)}") from None


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise OptionError(f"option {name} is {text!r}", hint="it is true or false")
    return text.strip().lower() == "true"


def _duration_ms(name: str, text: str) -> int:
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or not int(found[1]):
        raise OptionError(f"option {name} is {text!r}", hint="it is a time such as 500ms, 90s, 15m or 1h")
    return int(found[1]) * _UNITS_MS[found[2]]


def _batch_id(text: str) -> int:
    if not text.strip().isdecimal():
        raise OptionError(f"option batchId is {text!r}", hint="it is the number that foreachBatch gives")
    return int(text)


def _planned_ms(text: str) -> int:
    if not text.strip().isdecimal():
        raise OptionError(f"option plannedMs is {text!r}", hint="leave it out: write_batch gives it")
    return int(text)


def _missing_marker(text: str) -> str:
    small = text.strip().lower()
    if _MISSING_MARKER.fullmatch(small) is None:
        hint = "it is fail or write, or write:17 or skip:17 for batch 17 alone"
        raise OptionError(f"option missingMarker is {text!r}", hint=hint)
    return small


def _near(name: str) -> str:
    known = [*OWN.values(), *(_KAFKA + each for each in PRODUCER)]
    near = closest(name, known)
    if not near and name.lower() in PRODUCER:
        near = f"did you mean {_KAFKA}{name.lower()}?"
    return near or f"it has {', '.join(OWN.values())}, and settings of a producer as kafka.…"
