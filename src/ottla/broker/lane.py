"""The lane: a Produce of one batch and the Fetch that waits for it, in C where that could be built.

It does what `express.py` and `newest.py` do, and the dispatcher and `fetching.py` around them, and leaves to the
dispatcher all that is not of that form. What it bought is in docs/adr/0022-the-short-way-to-a-reader.md. The
machine's own clock it reads itself, any other it asks, so that a simulator is served by what users are served by.
"""

from ottla.broker.api import Pending
from ottla.broker.apis.metadata import INTERNAL_TOPICS
from ottla.broker.broker import Broker
from ottla.broker.dispatch import BUCKETS, Dispatcher, Route
from ottla.broker.durable import Part
from ottla.broker.express import once_durable
from ottla.broker.fetch_session import FetchSession, Wanted
from ottla.broker.fetching import Fetch
from ottla.broker.session import Session
from ottla.channel import swift
from ottla.channel.answer_stream import OPEN_REQUESTS_MAX
from ottla.channel.connection import Connection, Serve
from ottla.channel.connections import Connections
from ottla.log.log import Log
from ottla.log.producer_state import Producers
from ottla.log.segment import Segment
from ottla.log.tail import Tail
from ottla.partition.flusher import OsFlusher
from ottla.partition.partition import Partition
from ottla.world.clock import RealClock

try:
    from ottla.broker import _lane
    from ottla.log import _plain  # noqa: F401  # which it appends by
except ImportError:  # no compiler when Ottla was installed
    _lane = None  # type: ignore[assignment]

IS_HERE = _lane is not None and swift.IS_HERE
CLASSES: tuple[type, ...] = (
    *(Connection, Connections, Session, Partition, Log, Segment, Tail, Producers),
    *(Fetch, FetchSession, Wanted, Pending, Route, OsFlusher, RealClock),
)
NUMBERS = {"BUCKETS": BUCKETS, "OPEN_REQUESTS_MAX": OPEN_REQUESTS_MAX}

if IS_HERE:
    _lane.learn({cls.__name__: cls for cls in CLASSES} | NUMBERS)


def lane(dispatcher: Dispatcher, broker: Broker) -> Serve:
    """Return what serves the frames of a broker."""
    if not IS_HERE:
        return dispatcher.serve
    serve: Serve = _lane.Lane(
        general=dispatcher.serve,
        dispatcher=dispatcher,
        routes=dispatcher.routes,
        broker=broker,
        connections=broker.connections,
        call_later=broker.call_later,
        by_name=broker.table.partitions,
        by_id=broker.table.awake_by_id,
        sessions=broker.fetch_sessions.opened,
        internal=INTERNAL_TOPICS,
        durable=_durable,
        clock=broker.clock,
        fetch_bytes_max=broker.fetch_bytes_max,
    )
    return serve


def served() -> tuple[int, int, int]:
    """How many produces, parked fetches and woken readers have been served in C since the process began."""
    counts: tuple[int, int, int] = _lane.served() if IS_HERE else (0, 0, 0)
    return counts


def _durable(
    partition: Partition, name: bytes, index: int, base_offset: int, end_offset: int, acks: int, version: int
) -> Pending:
    part = Part(index=index, base_offset=base_offset, log_append_time_ms=-1)
    return once_durable(partition, name, part, end_offset, acks, version)
