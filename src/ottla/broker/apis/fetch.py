"""Fetch (1): read whole batches from partitions, now or once there is enough.

v7 brought sessions, v12 epochs for truncation, v13 topic ids, v15 moved the replica id into a tag. A fetch in the
middle of a batch gets the whole batch. Read-committed readers stop at the last stable offset and hear of aborted
transactions.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

from ottla.broker.api import Api, Handler, Pending
from ottla.broker.broker import Broker
from ottla.broker.fetch_session import UNKNOWN_MAX, FetchSession, Wanted, all_wanted
from ottla.broker.fetching import Fetch, Part
from ottla.broker.long_fetch import PARTITIONS_A_TURN, LongFetch, all_wanted_in_slices
from ottla.broker.pace import BULK_BYTES, at_its_pace
from ottla.broker.selector import RACK_AWARE
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

_SESSIONLESS = -1
_FOLLOWERS_READ_SINCE = 11  # KIP-392: whoever says where it is may read from a follower
_BRANCHES_SINCE = 12  # KIP-595: an answer says where logs branched
_BY_ID_SINCE = 13
_REPLICA_STATE_SINCE = 15
_HINTS_SINCE = 16


def handle(
    request: FetchRequest, version: int, connection: Connection, broker: Broker
) -> FetchResponse | Pending:
    """Read what is due; park when that is less than asked for."""
    by_id = version >= _BY_ID_SINCE
    now_ms = int(broker.clock.monotonic() * 1000)  # by which sessions are left
    sessions = broker.fetch_sessions
    epoch = request.session_epoch
    follower = _follower(request, version)
    session: FetchSession | None = None
    wanted: Iterable[Wanted] = ()
    if epoch in (_SESSIONLESS, 0):
        if request.session_id:
            sessions.close(request.session_id)
        if epoch == 0 and request.topics:
            size = sum(len(topic.partitions) for topic in request.topics)
            if not _is_oversized(size, broker):
                session = sessions.open(by_id, size, now_ms, follower is not None)
        if session is None:
            wanted = all_wanted(request, by_id)
    else:
        try:
            session = sessions.find(request.session_id, epoch, by_id, now_ms)
        except BrokerError as error:
            return FetchResponse(error_code=error.code)
        session.next_epoch()
        for topic in request.forgotten_topics_data:
            name = topic.topic_id if by_id else topic.topic
            for index in topic.partitions:
                session.forget((name, index))
    if session is not None:
        before = len(session.wanted)
        for asked in request.topics:
            name = asked.topic_id if by_id else asked.topic
            for part in asked.partitions:
                session.want((name, part.partition), part)
        if not session.wanted:
            sessions.close(session.id)
            session = None
        elif before < len(session.wanted) and epoch > 0 and _is_oversized(len(session.wanted), broker):
            sessions.close(session.id)  # and its client begins anew, without one
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    fetch = Fetch(request, by_id, session, wanted, full=epoch <= 0, broker=broker)
    _prepare(fetch, request, version, follower, connection, broker)
    return _reply(fetch, fetch.read(connection), request, connection, broker)


def serve_long(
    handle: Handler, request: FetchRequest, version: int, connection: Connection, broker: Broker
) -> Generator[None, None, Message | Pending | None]:
    """Read some partitions in a turn, where there are more than a session may have and there is none."""
    size = sum(len(topic.partitions) for topic in request.topics)
    epoch = request.session_epoch
    may_open = epoch == 0 and not _is_oversized(size, broker)
    if epoch not in (_SESSIONLESS, 0) or may_open or size <= PARTITIONS_A_TURN:
        return handle(request, version, connection, broker)
    if request.session_id:
        broker.fetch_sessions.close(request.session_id)
    by_id = version >= _BY_ID_SINCE
    wanted = yield from all_wanted_in_slices(request, by_id)
    fetch = LongFetch(request, by_id, None, wanted, full=True, broker=broker)
    _prepare(fetch, request, version, _follower(request, version), connection, broker)
    parts = yield from fetch.read_in_slices(connection)
    # No turn in between: what grows from now on wakes a fetch that is parked.
    return _reply(fetch, parts, request, connection, broker)


def _prepare(
    fetch: Fetch,
    request: FetchRequest,
    version: int,
    follower: tuple[int, int] | None,
    connection: Connection,
    broker: Broker,
) -> None:
    """Tell a fetch what else is known of who asks."""
    fetch.follower = follower
    fetch.leader_only = version < _FOLLOWERS_READ_SINCE
    fetch.may_diverge = version >= _BRANCHES_SINCE
    if version >= _HINTS_SINCE:
        fetch.listener = connection.listener
    if request.rack_id and follower is None and broker.settings["replica.selector.class"] == RACK_AWARE:
        fetch.rack, fetch.came_by = request.rack_id, connection.listener


def _reply(
    fetch: Fetch,
    parts: list[tuple[Wanted, Part]],
    request: FetchRequest,
    connection: Connection,
    broker: Broker,
) -> FetchResponse | Pending:
    """Answer with what was read, or wait for more."""
    if fetch.lacks:
        connection.pace = None
        return fetch.park(parts, connection)
    if fetch.bytes_read >= BULK_BYTES and fetch.follower is None:
        answer = fetch.answer(parts)
        return at_its_pace(answer, fetch.bytes_read, request.max_wait_ms, connection, broker)
    connection.pace = None
    return fetch.answer(parts)


def _is_oversized(size: int, broker: Broker) -> bool:
    """Whether so many partitions are more than a session may remember (law F4 of `fetch_session.py`)."""
    if size <= UNKNOWN_MAX:
        return False
    return size > UNKNOWN_MAX + sum(len(topic.partitions) for topic in broker.image.topics.by_name.values())


def _follower(request: FetchRequest, version: int) -> tuple[int, int] | None:
    """Which broker's replica it is that fetches, and in which of its epochs; None for everybody else."""
    if version < _REPLICA_STATE_SINCE:
        return (request.replica_id, -1) if request.replica_id >= 0 else None
    state = request.replica_state
    return (state.replica_id, state.replica_epoch) if state is not None and state.replica_id >= 0 else None


API = Api(FetchRequest, FetchResponse, handle, long=serve_long)
