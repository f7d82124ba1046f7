"""The lane: a Produce of one batch and the Fetch that waits for it, in C where that could be built.

It does what `express.py` and `newest.py` do, and the dispatcher and `fetching.py` around them, and leaves to the
dispatcher all that is not of that form. What it bought is in docs/adr/0022-the-short-way-to-a-reader.md. A world that
is not the real one is served by the dispatcher alone, which asks that world for the time.
"""

from ottla.broker.api import Pending
from ottla.broker.apis.metadata import INTERNAL_TOPICS
from ottla.broker.broker import Broker
from ottla.broker.dispatch import Dispatcher, Route
from ottla.broker.durable import Part
from ottla.broker.express import once_durable
from ottla.broker.fetch_session import FetchSession, Wanted
from ottla.broker.fetching import Fetch
from ottla.broker.session import Session
from ottla.channel import swift
from ottla.channel.connection import Connection, Connections, Serve
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

if IS_HERE:
    _CLASSES = (
        *(Connection, Connections, Session, Partition, Log, Segment, Tail, Producers),
        *(Fetch, FetchSession, Wanted, Pending, Route, OsFlusher),
    )
    _lane.learn({cls.__name__: cls for cls in _CLASSES})


def lane(dispatcher: Dispatcher, broker: Broker) -> Serve:
    """Return what serves the frames of a broker."""
    if not IS_HERE or type(broker.clock) is not RealClock:
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
        fetch_bytes_max=broker.fetch_bytes_max,
    )
    return serve


def _durable(
    partition: Partition, name: bytes, index: int, base_offset: int, end_offset: int, acks: int, version: int
) -> Pending:
    part = Part(index=index, base_offset=base_offset, log_append_time_ms=-1)
    return once_durable(partition, name, part, end_offset, acks, version)
