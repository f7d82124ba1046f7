"""Whether a micro-batch is written when its group has no marker of its query: a marker may have expired.

Brokers delete offsets, and so markers, `offsets.retention.minutes` after they were committed. A query that crashed
between its commit and Spark's, and is started again later than that, finds no marker of a batch that is written.

M1  If the group has any marker of the query, it has the last one: that was committed last, and expires last.
M2  The marker of a batch is committed after Spark has planned the batch. So a batch that was planned less than the
    retention ago, and has no marker, is not written. Spark keeps the time with the offsets of the batch, and repeats
    it when it runs the batch again.
M3  Where that is not known, or is too long ago, nobody knows whether the batch is written. Then it is neither
    written nor left out before somebody says which (`missingMarker`). Left out, it gets its marker, so that nobody is
    asked again. The one exception is the first batch of a query whose checkpoint is out of reach: it is written, with
    a warning, else no such query could ever begin.
M4  Where the time is not known, batches without rows have markers, too. So there is one from the first batch on, and
    to find none means that it has expired.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.admin.configs import Configs, Resource
from ottla.client.admin.offsets import Offsets
from ottla.client.admin.request_router import GROUP
from ottla.client.errors import ClientError
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.spark.connection import Connection
from ottla.spark.sink.checkpoint import planned_ms
from ottla.spark.sink.marker import Marker
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.refusal import LOGGER, PerhapsWritten
from ottla.world.clock import RealClock
from ottla.world.disk import RealDisk

_SETTING = "offsets.retention.minutes"
_MINUTE_MS = 60_000
# Where brokers do not tell. It was a day once, and nobody is known to have set less.
_RETENTION_MINUTES = 24 * 60
# Clocks of drivers differ, and that of the one which planned the batch may be ahead.
_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of when Spark has planned a micro-batch, and what was said for the case that it is too little."""

    checkpoint: str | None = None
    planned_ms: int | None = None
    missing_marker: str = "fail"

    @classmethod
    def of(cls, options: SinkOptions) -> "Plan":
        """Return what the options say."""
        return cls(options.checkpoint, options.planned_ms, options.missing_marker)

    def is_known(self, batch_id: int) -> bool:
        """Whether it can be found out here when Spark has planned a batch.

        What the path looks like does not tell: it may be of another file system, or of another machine than this one.
        """
        return self.time_ms(batch_id) is not None

    def time_ms(self, batch_id: int) -> int | None:
        """Return when Spark has planned a batch, in milliseconds since 1970, if that can be found out."""
        if self.planned_ms is not None or self.checkpoint is None:
            return self.planned_ms
        return planned_ms(RealDisk(), self.checkpoint, batch_id)

    def choice(self, batch_id: int) -> str:
        """Return what is to be done about a batch without a marker: fail, write or skip."""
        word, _, number = self.missing_marker.partition(":")
        return word if not number or int(number) == batch_id else "fail"


class Decision(enum.Enum):
    """What is left to do of a batch."""

    WRITE = enum.auto()
    MARK = enum.auto()  # somebody says that it is written, so nothing of it is missing but the marker
    NOTHING = enum.auto()


async def decide(connection: Connection, name: str, marker: Marker, plan: Plan) -> Decision:
    """Say what is left to do of a batch; PerhapsWritten if nobody knows whether it is written."""
    found = await Offsets(connection.desk).committed(name, require_stable=True)
    if marker.is_covered(found.values()):
        LOGGER.info("batch %d of query %s is written already", marker.batch_id, marker.query_id)
        return Decision.NOTHING
    if _has_any(marker, found):
        return Decision.WRITE
    planned = plan.time_ms(marker.batch_id)
    if planned is not None:
        retention = await _retention_ms(connection, name)
        age = RealClock().now_ms() - planned
        if -_MARGIN * retention <= age <= (1 - _MARGIN) * retention:
            return Decision.WRITE
        story = (
            f"Spark planned it {_duration(abs(age))} {'ago' if age >= 0 else 'from now'}, "
            f"and brokers keep markers for {_duration(retention)} ({_SETTING})"
        )
    else:
        story = (
            f"brokers keep markers for some time only ({_SETTING}), and when Spark planned it is not known"
        )
    return _chosen(name, marker, plan, story, is_known=planned is not None)


def _chosen(name: str, marker: Marker, plan: Plan, story: str, *, is_known: bool) -> Decision:
    batch, query = marker.batch_id, marker.query_id
    what = f"batch {batch} of query {query} has no marker in group {name}, and may be written: {story}"
    choice = plan.choice(batch)
    if choice == "fail" and not is_known and batch == 0:
        LOGGER.warning("%s; as the first batch it is written", what)
        return Decision.WRITE
    if choice == "fail":
        reach = "" if is_known else "give the option checkpointLocation a path on the driver's disk, or "
        raise PerhapsWritten(
            what,
            hint=f"{reach}look for its rows in the output, and start the query with the option missingMarker "
            f"set to skip:{batch} if they are there, to write:{batch} if they are not",
        )
    LOGGER.warning("%s; missingMarker is %s", what, plan.missing_marker)
    return Decision.MARK if choice == "skip" else Decision.WRITE


def _has_any(marker: Marker, found: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    marks = (Marker.parse(each.metadata) for each in found.values())
    return any(mark is not None and mark.query_id == marker.query_id for mark in marks)


async def _retention_ms(connection: Connection, name: str) -> int:
    """Return how long the coordinator of a group keeps its offsets."""
    try:
        broker = Resource.broker(await connection.cluster.coordinator(GROUP, name))
        found = await Configs(connection.desk).describe(broker, names=[_SETTING])
        return int(found[broker][_SETTING].value or "") * _MINUTE_MS
    except (ClientError, KeyError, ValueError) as error:
        LOGGER.warning("%s is taken for a day, since no broker tells: %s", _SETTING, error)
        return _RETENTION_MINUTES * _MINUTE_MS


def _duration(ms: float) -> str:
    minutes = ms / _MINUTE_MS
    for size, word in ((24 * 60, "days"), (60, "hours")):
        if minutes >= 2 * size:
            return f"{minutes / size:.3g} {word}"
    return f"{minutes:.3g} minutes"
