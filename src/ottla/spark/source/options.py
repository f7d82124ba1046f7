"""What a reader may be told: the names, meanings and defaults of Spark's own Kafka source, and a few of ours.

O1  Names may be written in capitals or not, as always in Spark. A name that nobody knows is refused, with the nearest.
O2  What cannot be is refused before anything is read, and what would have no effect is said in a warning.
O3  `kafka.` and a name of Kafka's is a setting of the client. Those that would interfere with Spark are refused.

Ours are `groupId`, the group that is told how far a stream has come; the place `group` in the offsets; `isolation`,
which is read_committed unless told otherwise; `columns`, those that are wanted; and `minRecordsPerPartition`, below
which partitions of topics share one of Spark's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ottla.client.settings.honoured import EVERYBODYS
from ottla.client.settings.resolve import ClientSettings, resolve
from ottla.metadata.settings.error import SettingError, closest
from ottla.spark.source.choice import Choice, assigned, matching, subscribed
from ottla.spark.source.refusal import LOGGER, OptionError
from ottla.spark.source.whence import EARLIEST, GROUP, LATEST, Whence, at_offsets, at_time, at_times, places

T = TypeVar("T")

ALL_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_KAFKA = "kafka."
_SETTINGS = "docs/reference/client-settings.md lists all there are"
_BOOTSTRAP = "kafka.bootstrap.servers"
_CHOICES: dict[str, Callable[[str], Choice]] = {
    "subscribe": subscribed,
    "subscribePattern": matching,
    "assign": assigned,
}
_OF_STREAMS = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "partition.metadata.cache.ttl.ms",
)
_OF_BATCHES = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
NAMES = (
    *_CHOICES,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    *_OF_BATCHES,
    *_OF_STREAMS,
    "minPartitions",
    "maxRecordsPerPartition",
    "minRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "groupId",
    "isolation",
    "columns",
)
"""Every option but those of Kafka's."""
_BY_SMALL = {name.lower(): name for name in NAMES}

# Settings of Kafka's that Spark's own source refuses too, and what to do instead.
_REFUSED = {
    "group.id": "set the option groupId to have offsets committed to a group",
    "auto.offset.reset": "set the option startingOffsets to earliest or latest",
    "key.deserializer": "keys come as bytes: cast them, or decode them with Spark's functions",
    "value.deserializer": "values come as bytes: cast them, or decode them with Spark's functions",
    "enable.auto.commit": "set the option groupId, to which each finished batch is committed",
    "interceptor.classes": "change the rows with Spark's functions",
}
_OBEYED = EVERYBODYS | {
    "check.crcs",
    "client.rack",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "isolation.level",
    "max.partition.fetch.bytes",
}
# Read in less time than a task of Spark's takes to begin.
_FEW = 200
_ISOLATIONS = ("read_committed", "read_uncommitted")
_UNITS_MS = {
    "": 1.0, "us": 0.001, "ms": 1.0, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6, "d": 8.64e7,
}  # fmt: skip
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one read, checked. `starting` and `ending` are None where nobody said; the rest has defaults."""

    choice: Choice
    settings: ClientSettings
    columns: tuple[str, ...]
    starting: Whence | None
    ending: Whence | None
    group: str | None
    fails_on_data_loss: bool
    partitions_min: int | None
    records_per_partition_max: int | None
    records_per_partition_min: int
    offsets_per_trigger_max: int | None
    offsets_per_trigger_min: int | None
    trigger_delay_max_ms: float
    metadata_age_max_ms: float
    offset_tries: int
    offset_retry_ms: int
    poll_timeout_ms: int
    idle: tuple[str, ...]  # options that are for streams alone

    @property
    def is_committed_only(self) -> bool:
        """Whether records of open and aborted transactions are passed over."""
        return bool(self.settings["isolation.level"] == "read_committed")

    def check_batch(self) -> None:
        """Refuse what only a stream can be told."""
        if self.starting is not None and LATEST in _named(self.starting):
            raise OptionError(
                "a batch cannot begin at the end: startingOffsets has latest, or -1",
                hint="set startingOffsets to earliest, to offsets, or use readStream",
            )
        if self.ending is not None and EARLIEST in places(self.ending):
            raise OptionError(
                "a batch cannot end at the beginning: endingOffsets has earliest, or -2",
                hint="set endingOffsets to latest or to offsets",
            )
        if self.idle:
            LOGGER.warning("without effect in a batch: %s", ", ".join(self.idle))

    def check_stream(self) -> None:
        """Refuse what only a batch can be told."""
        if self.ending is not None:
            raise OptionError(
                "a stream has no end: endingOffsets and endingTimestamp are for batches",
                hint="leave them out, or use spark.read; trigger(availableNow=True) ends at what is there now",
            )


def _named(whence: Whence) -> set[int]:
    # By timestamp, the end is only where to go when nothing is that young.
    return places(whence) if not hasattr(whence, "or_latest") else set()


def parse(given: Mapping[str, str]) -> SourceOptions:
    """Return the options of a read; OptionError says what is wrong with them."""
    own: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for name, value in given.items():
        small = name.lower()
        if small.startswith(_KAFKA) and small[len(_KAFKA) :]:
            kafka[small.removeprefix(_KAFKA)] = value
        elif small in _BY_SMALL:
            own[_BY_SMALL[small]] = value
        else:
            raise _unknown(name)
    settings = _settings(kafka, own)
    strategy = own.get("startingOffsetsByTimestampStrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise _wrong("startingOffsetsByTimestampStrategy", strategy, "error or latest")
    starting = _whence(own, "starting", or_latest=strategy == "latest")
    ending = _whence(own, "ending", or_latest=True)
    group = own.get("groupId", "").strip() or None
    if group is None and any(GROUP in places(each) for each in (starting, ending) if each is not None):
        raise OptionError(
            "offsets are to be a group's, and there is no group", hint="set the option groupId to its name"
        )
    lowest, highest = _count(own, "minOffsetsPerTrigger"), _count(own, "maxOffsetsPerTrigger")
    if lowest is not None and highest is not None and lowest > highest:
        raise OptionError(
            f"minOffsetsPerTrigger ({lowest}) is more than maxOffsetsPerTrigger ({highest})",
            hint="lower the one or raise the other",
        )
    return SourceOptions(
        choice=_choice(own),
        settings=settings,
        columns=_columns(own),
        starting=starting,
        ending=ending,
        group=group,
        fails_on_data_loss=_flag(own, "failOnDataLoss", True),
        partitions_min=_count(own, "minPartitions"),
        records_per_partition_max=_count(own, "maxRecordsPerPartition"),
        records_per_partition_min=_few(own),
        offsets_per_trigger_max=highest,
        offsets_per_trigger_min=lowest,
        trigger_delay_max_ms=_duration_ms(own, "maxTriggerDelay", "15m"),
        metadata_age_max_ms=_age_ms(own),
        offset_tries=_count(own, "fetchOffset.numRetries") or 3,
        offset_retry_ms=_count(own, "fetchOffset.retryIntervalMs", least=0) or 0
        if "fetchOffset.retryIntervalMs" in own
        else 1000,
        poll_timeout_ms=_count(own, "kafkaConsumer.pollTimeoutMs") or 120_000,
        idle=tuple(name for name in _OF_STREAMS if name in own),
    )


def _unknown(name: str) -> OptionError:
    small = {each.lower(): each for each in (*NAMES, _BOOTSTRAP)}
    near = closest(name.lower(), small)
    for key, value in small.items():
        near = near.replace(key, value) if near == f"did you mean {key}?" else near
    if not near and re.fullmatch(r"[a-z]+(\.[a-z]+)+", name):
        near = f"a setting of Kafka's is written with kafka. before it: kafka.{name}"
    return OptionError(
        f"the source has no option {name}", hint=near or f"it has {', '.join(NAMES)} and kafka.*"
    )


def _settings(kafka: Mapping[str, str], own: Mapping[str, str]) -> ClientSettings:
    if not kafka.get("bootstrap.servers", "").strip():
        raise OptionError(
            f"option {_BOOTSTRAP} is missing", hint="give the address of a broker, as in localhost:9092"
        )
    for name, hint in _REFUSED.items():
        if name in kafka:
            raise OptionError(f"the source does not take kafka.{name}", hint=hint)
    isolation = own.get("isolation", kafka.get("isolation.level", "read_committed")).strip().lower()
    if isolation not in _ISOLATIONS:
        raise _wrong("isolation", isolation, " or ".join(_ISOLATIONS))
    if isolation != kafka.get("isolation.level", isolation).strip().lower():
        raise OptionError("isolation and kafka.isolation.level contradict each other", hint="leave one out")
    try:
        settings = resolve("consumer", None, {**kafka, "isolation.level": isolation})
    except SettingError as error:
        hint = error.hint or (f"it is {error.allowed}" if error.allowed else _SETTINGS)
        raise OptionError(f"option kafka.{error.name}: {error}", hint=hint) from None
    idle = sorted(settings.given - _OBEYED)
    if idle:
        LOGGER.warning("without effect in Spark: %s", ", ".join(f"kafka.{name}" for name in idle))
    return settings


def _choice(own: Mapping[str, str]) -> Choice:
    named = [name for name in _CHOICES if name in own]
    if len(named) != 1:
        what = f"{' and '.join(named)} contradict each other" if named else "nothing says what to read"
        raise OptionError(what, hint=f"set one of {', '.join(_CHOICES)}")
    return _CHOICES[named[0]](own[named[0]])


def _whence(own: Mapping[str, str], end: str, *, or_latest: bool) -> Whence | None:
    """Read what says where to start or end; a time for all goes before times by partition, and those before offsets."""
    for_all, by_partition, offsets = f"{end}Timestamp", f"{end}OffsetsByTimestamp", f"{end}Offsets"
    if for_all in own:
        return at_time(for_all, own[for_all], or_latest)
    if by_partition in own:
        return at_times(by_partition, own[by_partition], or_latest)
    return at_offsets(offsets, own[offsets]) if offsets in own else None


def _columns(own: Mapping[str, str]) -> tuple[str, ...]:
    with_headers = _flag(own, "includeHeaders", False)
    if "columns" not in own:
        return ALL_COLUMNS if with_headers else ALL_COLUMNS[:-1]
    by_small = {name.lower(): name for name in ALL_COLUMNS}
    chosen: list[str] = []
    for word in own["columns"].split(","):
        name = by_small.get(word.strip().lower())
        if name is None:
            near = closest(word.strip().lower(), by_small)
            raise OptionError(
                f"option columns names {word.strip()!r}, which is no column",
                hint=near or f"there are {', '.join(ALL_COLUMNS)}",
            )
        if name in chosen:
            raise OptionError(f"option columns names {name} twice", hint="name it once")
        chosen.append(name)
    if with_headers and "headers" not in chosen:
        raise OptionError(
            "includeHeaders asks for headers, and columns leaves them out", hint="add headers to columns"
        )
    return tuple(chosen)


def _flag(own: Mapping[str, str], name: str, default: bool) -> bool:
    text = own.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise _wrong(name, text, "true or false")
    return text == "true"


def _count(own: Mapping[str, str], name: str, *, least: int = 1) -> int | None:
    if name not in own:
        return None
    try:
        number = int(own[name].strip())
    except ValueError:
        number = least - 1
    if number < least:
        raise _wrong(name, own[name], f"a number, {least} or more")
    return number


def _few(own: Mapping[str, str]) -> int:
    """Below how many offsets a range shares a task; whoever asks for many tasks does not want that."""
    name = "minRecordsPerPartition"
    asked = _count(own, name, least=0)
    if asked is None:
        return 0 if "minPartitions" in own or "maxRecordsPerPartition" in own else _FEW
    return asked


def _age_ms(own: Mapping[str, str]) -> float:
    name = "partition.metadata.cache.ttl.ms"
    if own.get(name, "").strip() == "-1":
        return 0.0
    age_ms = _count(own, name)
    # Asked for beside the offsets, and so not waited for; but an idle stream asks a hundred times a second.
    return 1000.0 if age_ms is None else float(age_ms)


def _duration_ms(own: Mapping[str, str], name: str, default: str) -> float:
    text = own.get(name, default).strip().lower()
    found = _DURATION.fullmatch(text)
    if found is None or found[2] not in _UNITS_MS:
        raise _wrong(name, text, "a time such as 500ms, 30s, 15m or 1h")
    return int(found[1]) * _UNITS_MS[found[2]]


def _wrong(name: str, value: str, allowed: str) -> OptionError:
    return OptionError(f"option {name} is {value!r}", hint=f"it is {allowed}")
