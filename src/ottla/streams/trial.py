"""Running a topology on given records, for tests: the same plan, no broker.

It runs in this process, on the reference, or on Spark as `start` would.

T1  State is in one partition, so stream time is one for the whole topology and results have an order.
T2  What the topology writes to a topic that it reads itself is read in a next round, until nothing new is written.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ottla.client.record import Record
from ottla.spark.installed import require_pyspark
from ottla.streams.errors import StreamsError, TopologyError, TypeMismatch
from ottla.streams.plan.sources import Source, reads
from ottla.streams.plan.topology import Plan
from ottla.streams.settings import NEEDS_SPARK, AppSettings
from ottla.streams.types.codec import encoder
from ottla.streams.types.serde import Serde

_ROUNDS_MAX = 100


# A record that came out; and the same as it is read again, if it was written to a topic.
CameOut = tuple[Record, Record | None]
# Runs on some records more, in so many micro-batches.
Round = Callable[[Mapping[str, Sequence[Record]], int], list[CameOut]]


def trial(
    settings: AppSettings, plan: Plan, given: Mapping[str, Sequence[Any]], batches: int, on: str
) -> dict[str, list[Record]]:
    """Return what comes out of a topology, by topic."""
    if batches < 1:
        raise TopologyError(f"test: {batches} micro-batches are none")
    if on not in ("python", "spark"):
        raise TopologyError(f"test: on is {on!r}", hint="it is 'python' or 'spark'")
    _check_given(plan.sources, list(given))
    if on == "python":
        return _rounds(_on_python(settings, plan), plan, given, batches)
    with tempfile.TemporaryDirectory(prefix="ottla-test-", ignore_cleanup_errors=True) as directory:
        return _rounds(_on_spark(settings, plan, Path(directory)), plan, given, batches)


def _on_python(settings: AppSettings, plan: Plan) -> Round:
    from ottla.streams.reference.interpreter import Interpreter

    running = Interpreter(
        plan,
        updates=settings.updates,
        dead_letters=settings.dead_letters,
        app=settings.name,
        native=settings.native,
    )
    return lambda given, batches: [(each.record, each.raw) for each in running.run(given, batches)]


def _on_spark(settings: AppSettings, plan: Plan, directory: Path) -> Round:
    require_pyspark(NEEDS_SPARK)
    from ottla.streams.lowering.deployment import Trial

    running = Trial(settings, plan, directory)
    return lambda given, batches: [(each, each) for each in running.round(given, batches)]


def _rounds(
    run: Round, plan: Plan, given: Mapping[str, Sequence[Any]], batches: int
) -> dict[str, list[Record]]:
    clock = count()
    offsets: dict[str, Iterator[int]] = {}
    raw = {
        topic: [
            _raw(topic, each, _source(plan, topic), clock, offsets.setdefault(topic, count()))
            for each in records
        ]
        for topic, records in given.items()
    }
    found: dict[str, list[Record]] = {}
    for _ in range(_ROUNDS_MAX):
        came_out = run(raw, batches)
        raw, batches = {}, 1
        for shown, written in came_out:
            topic = shown.topic
            found.setdefault(topic, []).append(shown)
            if written is not None and any(reads(each, topic) for each in plan.sources):
                offset = offsets.setdefault(topic, count())
                again = _raw(topic, written, _source(plan, topic), clock, offset)
                raw.setdefault(topic, []).append(again)
        if not raw:
            return {topic: _numbered(records) for topic, records in found.items()}
    raise StreamsError(f"after {_ROUNDS_MAX} rounds the topology still writes to topics that it reads")


def _check_given(sources: Sequence[Source], topics: Sequence[str]) -> None:
    """Refuse topics that nobody reads."""
    for topic in topics:
        if not any(reads(each, topic) for each in sources):
            known = ", ".join(each.pattern or ", ".join(each.topics) for each in sources) or "none"
            raise TopologyError(f"nothing reads the topic {topic!r}", hint=f"read are {known}")


def _source(plan: Plan, topic: str) -> Source:
    return next(each for each in plan.sources if reads(each, topic))


def _raw(topic: str, given: Any, source: Source, clock: Iterator[int], offsets: Iterator[int]) -> Record:
    """A record as a broker would have it."""
    key, value, timestamp, headers = _parts(given)
    now = next(clock)
    return Record(
        topic,
        0,
        next(offsets),
        now if timestamp is None or timestamp < 0 else timestamp,
        _encoded(source.key_serde, key, topic, "key"),
        _encoded(source.value_serde, value, topic, "value"),
        headers,
    )


def _parts(given: Any) -> tuple[Any, Any, int | None, Any]:
    if isinstance(given, Record):
        return given.key, given.value, given.timestamp, given.headers
    if type(given) is tuple and len(given) == 2:
        return given[0], given[1], None, ()
    if type(given) is tuple and len(given) == 3:
        return given[0], given[1], given[2], ()
    return None, given, None, ()


def _encoded(serde: Serde, data: Any, topic: str, half: str) -> bytes | None:
    # Bytes are taken as they are: so records can be given that cannot be read.
    if data is None or isinstance(data, bytes):
        return data
    try:
        return encoder(serde)(data)
    except TypeMismatch as error:
        raise TypeMismatch(f"test: the {half} of a record for {topic}: {error.args[0]}") from None


def _numbered(records: list[Record]) -> list[Record]:
    return [each._replace(partition=max(each.partition, 0), offset=n) for n, each in enumerate(records)]


def record(value: Any, key: Any = None, timestamp: int | None = None, headers: Any = ()) -> Record:
    """Return a record for a test."""
    return Record("", 0, -1, -1 if timestamp is None else timestamp, key, value, tuple(headers))
