"""A fetch: what one request reads, now or once there is enough of it.

read() --enough, or an error--> answer()
|
park() --wake(), finish()--> _complete() --> answer()
|
cancel()                                                (the client has gone)
"""

from collections.abc import Iterable
from typing import Any

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.broker.fetch_leaders import tell_leaders
from ottla.broker.fetch_session import FetchSession, Wanted
from ottla.broker.newest import newest
from ottla.broker.selector import NOBODY, preferred_replica
from ottla.channel.connection import Connection
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

Topic = FetchResponse.FetchableTopicResponse
Part = Topic.PartitionData
Aborted = Part.AbortedTransaction
Diverging = Part.EpochEndOffset

_response, _topic, _part = FetchResponse.maker(), Topic.maker(), Part.maker()


class Fetch:
    """One fetch request: read, and if need be parked and read again."""

    __slots__ = (
        "_alone",
        "_broker",
        "_by_id",
        "_bytes_max",
        "_bytes_min",
        "_committed",
        "_connection",
        "_full",
        "_gathered",
        "_grown",
        "_growth",
        "_no_room",
        "_parked",
        "_pending",
        "_session",
        "_timer",
        "_wait_ms",
        "_wanted",
        "bytes_read",
        "came_by",
        "follower",
        "leader_only",
        "listener",
        "may_diverge",
        "rack",
        "settled",
    )

    def __init__(
        self,
        request: FetchRequest,
        by_id: bool,
        session: FetchSession | None,
        wanted: Iterable[Wanted],
        *,
        full: bool,
        broker: Broker,
    ) -> None:
        self._alone: Wanted | None = None  # the only thing it waits for, in a form that `newest` answers
        self._broker = broker
        self._by_id = by_id
        self._session = session
        self._wanted = wanted
        self._full = full
        self._committed = request.isolation_level == 1
        self._bytes_max = bytes_max = min(request.max_bytes, broker.fetch_bytes_max)
        self._bytes_min = min(request.min_bytes, bytes_max)  # so that nobody waits for what it would not be given
        self._wait_ms = request.max_wait_ms
        # While more than one byte is waited for: how much there is to read, of each partition and in all.
        self._growth: dict[Partition, tuple[Wanted, int]] = {}
        self._gathered = 0
        self._grown: dict[Partition, None] = {}
        # While parked without a session: the answer as it stands, and the parts of it.
        self._parked: tuple[FetchResponse, dict[Partition, tuple[Wanted, Part]]] | None = None
        self._connection: Connection | None = None
        self._pending: Pending | None = None
        self._timer: Any = None
        self._no_room = False  # for records in an answer
        self.bytes_read = 0
        self.follower: tuple[int, int] | None = None
        self.leader_only = False
        self.may_diverge = True  # and hear of it: a session may be gone on with at an earlier version
        self.rack = ""  # of a consumer that may be sent to a replica near to it
        self.came_by = ""
        self.listener: str | None = None  # where the client connected, if it understands who leads instead
        self.settled = session is None and not wanted

    # Reading

    def read(self, connection: Connection) -> list[tuple[Wanted, Part]]:
        """Read everything that is due, within the limits, and note whether waiting could bring more."""
        session = self._session
        left = self._limit(connection)
        parts: list[tuple[Wanted, Part]] = []
        served: list[Wanted] = []
        self.bytes_read = 0
        for wanted in self._wanted if session is None else session.turn():
            part, partition = self._read(wanted, left)
            size = len(part.records or b"")
            left = max(0, left - size)
            self.bytes_read += size
            if session is None:
                wanted.partition = partition
            else:
                session.watch(wanted, partition)
                if size:
                    served.append(wanted)
                elif part.error_code or wanted.offset < self._reach(part, partition):
                    session.due[wanted.key] = wanted
            if part.error_code or part.diverging_epoch is not None:
                self.settled = True
            parts.append((wanted, part))
        for wanted in served:  # F3: behind those that got nothing
            session.due[wanted.key] = wanted  # type: ignore[union-attr]
        return parts

    def _limit(self, connection: Connection) -> int:
        """Return how many bytes may be read: no more than there is room for in answers (law C8 of a connection).

        Where there is none nothing is read, and the client asks again. Where there is some, the first batch comes even
        when it is larger, and nobody waits for more than that.
        """
        room = self._broker.connections.answer_bytes_max(connection)
        self._no_room = room <= 0
        if room < self._bytes_min:
            self._bytes_min = max(1, room)
        return min(self._bytes_max, room)

    def _reach(self, part: Part, partition: Partition | None) -> int:
        """How far there is something to read: for a follower also what is not committed."""
        if self.follower is None or partition is None:
            return part.high_watermark
        return partition.log.end_offset

    def _read(self, wanted: Wanted, left: int) -> tuple[Part, Partition | None]:
        part = _part(partition_index=wanted.key[1], records=b"")
        table = self._broker.table
        topic, index = wanted.key
        try:
            partition = table.by_id(topic, index) if self._by_id else table.by_name(topic, index)  # type: ignore[arg-type]
        except BrokerError as error:
            part.error_code = error.code
            part.high_watermark = part.last_stable_offset = part.log_start_offset = -1
            return part, None
        self._fill(part, wanted, partition, left)
        return part, partition

    def _fill(self, part: Part, wanted: Wanted, partition: Partition, left: int) -> None:
        """Read one partition, at most `left` bytes unless it is the first to have any."""
        try:
            partition.fetch_requests += 1
            epoch = wanted.leader_epoch
            if partition.refusal is not None or (epoch >= 0 and epoch != partition.leader_epoch):
                partition.check_epoch(epoch)
                if partition.refusal is not None and (self.leader_only or self.follower is not None):
                    raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            log = partition.log
            offset = wanted.offset
            part.high_watermark = high_watermark = partition.high_watermark
            part.last_stable_offset = stable_offset = log.last_stable_offset(high_watermark)
            part.log_start_offset = start_offset = log.start_offset
            if self.rack and self._sends_away(part, wanted, partition):
                return
            if wanted.fetched_epoch >= 0 and self.may_diverge and self._diverges(partition, wanted, part):
                return
            if not start_offset <= offset <= log.end_offset:
                raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
            end_offset = stable_offset if self._committed else high_watermark
            if self.follower is not None:
                end_offset = self._followed(part, wanted, partition)
            if offset < end_offset and (left > 0 or not self.bytes_read) and not self._no_room:
                size_max = min(wanted.bytes_max, left)
                part.records = data = log.read(offset, size_max, end_offset, at_least_one=not self.bytes_read)
                partition.bytes_out += len(data)
                if self.follower is not None and (roles := self._broker.table.roles) is not None:
                    giving = roles.throttles.giving
                    if giving.named:
                        giving.record(partition, len(data))
            part.aborted_transactions = [] if self._committed else None
            found = part.records if self._committed else None
            if found and (aborted := log.aborted_transactions(offset, end_offset, found)):
                part.aborted_transactions = [
                    Aborted(producer_id=producer_id, first_offset=first) for producer_id, first in aborted
                ]
        except (BrokerError, OSError) as error:
            partition.fetch_failures += 1
            if isinstance(error, OSError):
                error = partition.log.storage_error(error)
            part.error_code = error.code
            part.records = b""
            part.high_watermark = part.last_stable_offset = part.log_start_offset = -1
            part.aborted_transactions = None

    def _followed(self, part: Part, wanted: Wanted, partition: Partition) -> int:
        """Take note of how far a follower is, and return how far it may read: to the end, committed or not."""
        assert self.follower is not None
        roles = self._broker.table.roles
        if roles is None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker has no followers")
        roles.fetched(partition, self.follower[0], wanted.offset, wanted.own_start_offset, self.follower[1])
        part.high_watermark = partition.high_watermark  # which that may have raised
        if self._is_held_back(partition):
            return wanted.offset  # and hears nothing before it may go on: it could not use it
        if wanted.known_watermark < part.high_watermark:
            self.settled = True  # KIP-1166: it is told at once
        return partition.log.end_offset

    def _is_held_back(self, partition: Partition) -> bool:
        """Whether a follower that catches up has had enough for now."""
        roles = self._broker.table.roles
        if roles is None or not roles.throttles.giving.named or self.follower is None:
            return False
        leadership = partition.leadership
        in_sync = leadership is not None and self.follower[0] in leadership.isr
        return roles.throttles.giving.holds_back(partition, in_sync=in_sync)

    def _sends_away(self, part: Part, wanted: Wanted, partition: Partition) -> bool:
        """Tell a consumer whose rack has a replica to read there (KIP-392)."""
        chosen = preferred_replica(self._broker, partition, wanted.offset, self.rack, self.came_by)
        if chosen == NOBODY:
            return False
        part.preferred_read_replica = chosen
        part.aborted_transactions = [] if self._committed else None
        self.settled = True
        return True

    @staticmethod
    def _diverges(partition: Partition, wanted: Wanted, part: Part) -> bool:
        """Tell a reader whose log branched off ours where the branch is (KIP-595)."""
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.fetched_epoch)
        if epoch < 0:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.fetched_epoch or end_offset < wanted.offset:
            part.diverging_epoch = Diverging(epoch=epoch, end_offset=end_offset)
            return True
        return False

    # Answering

    def answer(self, parts: list[tuple[Wanted, Part]]) -> FetchResponse:
        """Say what was read: everything on a full fetch, in a session only what is news."""
        topics: list[Topic] = []
        last: str | bytes | None = None
        session = self._session
        for wanted, part in parts:
            if session is not None and not self._news(wanted, part):
                continue
            name = wanted.key[0]
            if name != last:
                topics.append(_topic(topic_id=name) if self._by_id else _topic(topic=name))
                last = name
            topics[-1].partitions.append(part)
        response = _response(session_id=0 if session is None else session.id, responses=topics)
        if self.settled and self.listener is not None:
            tell_leaders(self._broker, parts, response, self.listener)
        return response

    def _news(self, wanted: Wanted, part: Part) -> bool:
        news = (
            self._full
            or bool(part.records)
            or part.error_code != 0
            or part.diverging_epoch is not None
            or part.preferred_read_replica >= 0
            or part.high_watermark != wanted.high_watermark
            or part.log_start_offset != wanted.start_offset
        )
        # An error is told again until it is gone: forget what was told, so that recovery is news as well.
        wanted.high_watermark = -1 if part.error_code else part.high_watermark
        wanted.start_offset = part.log_start_offset
        return news

    # Waiting

    @property
    def lacks(self) -> bool:
        """Whether less was read than was asked for, and waiting could help."""
        return self._wait_ms > 0 and not self.settled and self.bytes_read < self._bytes_min

    def park(self, parts: list[tuple[Wanted, Part]], connection: Connection) -> Pending:
        """Wait for growth, or for the client's patience to end."""
        pending = self._pending = Pending()
        session = self._session
        if session is not None:
            for wanted, _ in parts:
                session.due[wanted.key] = wanted
            session.parked = self.wake
        else:
            found: dict[Partition, tuple[Wanted, Part]] = {}
            for wanted, part in parts:
                partition = wanted.partition
                if partition is not None:
                    (partition.readers if self.follower is None else partition.tailers)[self] = None
                    found[partition] = wanted, part
            if not self.bytes_read and len(found) == len(parts):
                self._parked = self.answer(parts), found
                if len(parts) == 1 and self._by_id and self.follower is None and not self.rack:
                    self._alone = parts[0][0]
        if self._bytes_min > 1:
            self._gathered = self.bytes_read
            for wanted, part in parts:
                if wanted.partition is not None:
                    self._growth[wanted.partition] = wanted, len(part.records or b"")
        self._timer = self._broker.call_later(self._wait_ms / 1000, self.finish)
        self._connection = connection
        connection.on_close.append(self.cancel)
        return pending

    def wake(self, partition: Partition) -> None:
        """A partition has grown; answer once the growth adds up to what was asked for."""
        if self._pending is None or (self.follower is not None and self._is_held_back(partition)):
            return
        if self._committed and self.follower is None and self._sees_nothing(partition):
            return
        grown = self._grown
        first = not grown
        grown[partition] = None
        if self._bytes_min > 1:
            if self._gathers(partition):
                return
            first = True
        if first:
            # Not before all of a burst is appended, so that it is answered once.
            self._broker.connections.soon(self._complete)

    def _gathers(self, partition: Partition) -> bool:
        """Count what there is to read of a partition, and say whether that is too little yet (Kafka's DelayedFetch).

        What was there when the fetch was parked stands in `_growth`, for partitions that it looked at; of the others of
        a session there was nothing.
        """
        known = self._growth.get(partition)
        if known is not None:
            wanted, before = known
        elif self._session is not None:
            wanted, before = self._session.wanted[self._session.key_of(partition)], 0
        else:
            return False
        if partition.error is not None or wanted.leader_epoch not in (-1, partition.leader_epoch):
            return False  # and should hear of it
        if partition.refusal is not None and (self.leader_only or self.follower is not None):
            return False
        log = partition.log
        if self.follower is not None:
            end_offset = log.end_offset
        elif self._committed:
            end_offset = log.last_stable_offset(partition.high_watermark)
        else:
            end_offset = partition.high_watermark
        readable = log.readable_bytes(wanted.offset, end_offset, wanted.bytes_max)
        self._growth[partition] = wanted, readable
        self._gathered += readable - before
        return self._gathered < self._bytes_min

    def _sees_nothing(self, partition: Partition) -> bool:
        """Whether what has grown is hidden from a reader of committed records, by a transaction that is open."""
        if self._alone is not None:
            wanted, seen = self._alone, self._alone.offset
        elif self._session is not None:
            wanted = self._session.wanted[self._session.key_of(partition)]
            seen = wanted.offset
        elif self._parked is not None:
            wanted, part = self._parked[1][partition]
            seen = part.last_stable_offset
        else:
            return False
        if partition.refusal is not None or wanted.leader_epoch not in (-1, partition.leader_epoch):
            return False  # and should hear of it
        return partition.log.last_stable_offset(partition.high_watermark) <= seen

    def finish(self) -> None:
        """The client has waited long enough."""
        self._parked = None
        self._complete()

    def cancel(self) -> None:
        """The client has gone."""
        self._unpark()
        self._pending = None

    def _unpark(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if self._connection is not None and self.cancel in self._connection.on_close:
                self._connection.on_close.remove(self.cancel)
        if self._session is not None:
            self._session.parked = None
        else:
            for wanted in self._wanted:
                if wanted.partition is not None:
                    wanted.partition.readers.pop(self, None)
                    wanted.partition.tailers.pop(self, None)

    def _only(self) -> Wanted | None:
        """The one thing that an answer would tell of, where it may be told in the form of `newest`."""
        session = self._session
        if session is None:
            return self._alone if self._alone is not None and self._alone.bytes_max >= 0 else None
        if self._full or not self._by_id or self.follower is not None or self.rack or len(session.due) != 1:
            return None
        only = next(iter(session.due.values()))
        return only if only.bytes_max >= 0 else None

    def _complete(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        assert self._connection is not None, "a fetch that waits has a client"
        only = None if self._connection.held else self._only()
        if only is not None and only.partition is not None:
            session_id = 0 if self._session is None else self._session.id
            whole = newest(only, only.partition, self._committed, pending, session_id)
            if whole is not None:  # the client has it before we tidy up
                pending.send(whole)
                only.high_watermark = only.partition.high_watermark
                only.start_offset = only.partition.log.start_offset
                self._unpark()
                return
        if self._parked is None:
            self._unpark()
            pending.resolve(self.answer(self.read(self._connection)))
            return
        # Nothing but what has grown is read again.
        (response, found), left = self._parked, self._limit(self._connection)
        for partition in self._grown:
            wanted, part = found[partition]
            self._fill(part, wanted, partition, left)
            size = len(part.records or b"")
            left = max(0, left - size)
            self.bytes_read += size
        pending.resolve(response)
        self._unpark()
