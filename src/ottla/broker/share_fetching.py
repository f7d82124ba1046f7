"""One ShareFetch: take its acknowledgements, hand out records now or once there are some, and answer.

F1  Nothing is handed out before there is as much as was asked for, or the member has waited long enough.
F2  The answer leaves once records were found, or will not be, and every acknowledgement is durable or refused.
F3  A member that has gone is handed nothing.

    begin() --nothing there--> parked --wake(), time--> fetched --acknowledgements settled--> answered
"""

from typing import Any

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.broker.share_acknowledging import Outcomes, Place, acknowledge, unknown
from ottla.broker.share_leaders import name_leaders
from ottla.broker.share_partitions import Seat
from ottla.broker.share_reading import Reading, read
from ottla.broker.share_traffic import Asked
from ottla.channel.connection import Connection
from ottla.share.acquire import Wish
from ottla.share.key import ShareKey
from ottla.share.partition import Phase
from ottla.share.session import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

Topic = ShareFetchResponse.ShareFetchableTopicResponse
Part = Topic.PartitionData

_RECORD_LIMIT = 1
_MODES = (0, _RECORD_LIMIT)
_ROUNDS = 16  # How often a try goes on after batches in which there was nothing to hand out.


class ShareFetching:
    """A ShareFetch under way, and while it is parked one of those who wait for its share partitions."""

    __slots__ = (
        "_acknowledged",
        "_broker",
        "_bytes_max",
        "_bytes_min",
        "_committed",
        "_connection",
        "_fetched",
        "_listener",
        "_parts",
        "_places",
        "_request",
        "_seats",
        "_session",
        "_timer",
        "_version",
        "_woken",
        "connection_id",
        "pending",
    )

    def __init__(
        self,
        request: ShareFetchRequest,
        version: int,
        session: ShareSession,
        connection: Connection,
        broker: Broker,
    ) -> None:
        self._request = request
        self._version = version
        self._session = session
        self._broker = broker
        epoch = request.share_session_epoch
        self._places: list[Place] = [] if epoch == FINAL_EPOCH else session.rotated(epoch)
        self._bytes_max = min(request.max_bytes, broker.fetch_bytes_max)
        self._bytes_min = min(request.min_bytes, self._bytes_max)
        isolation = broker.coordination.config(session.key.group_id, "share.isolation.level")
        self._committed = isolation == "read_committed"
        self._parts: dict[Place, Part] = {}
        self._seats: dict[Place, Seat] = {}
        self._acknowledged: Outcomes | None = None
        self._fetched = False
        self._woken = False
        self._timer: Any = None
        self.connection_id = broker.share.connection_id(connection)
        self._connection = connection
        self._listener = connection.listener
        self.pending: Pending | None = Pending()

    @property
    def _renews(self) -> bool:
        return self._version >= 2 and self._request.is_renew_ack

    def begin(self) -> Pending:
        """Do what can be done at once, and wait for the rest."""
        pending = self.pending
        assert pending is not None, "a fetch begins once"
        request = self._request
        acknowledge(
            self._broker, self._session.key, self._topics(), may_renew=self._renews, done=self._settled
        )
        self._count(Asked.FETCHES, self._places)
        mode = request.share_acquire_mode
        if self._version >= 2 and self._places and not self._renews and mode not in _MODES:
            self.pending = None
            pending.resolve(ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
            return pending
        idle = self._renews or not self._places or request.max_records <= 0 or self._bytes_max <= 0
        if idle or self._acquire(patient=request.max_wait_ms > 0):
            self._finish()
        else:
            self._park()
        return pending

    def _topics(self) -> list[ShareFetchRequest.FetchTopic]:
        """Return the acknowledgements; partitions that are only asked for say nothing."""
        topics = self._request.topics
        said = any(part.acknowledgement_batches for topic in topics for part in topic.partitions)
        return topics if said else []

    # Handing out

    def _acquire(self, *, patient: bool) -> bool:
        """Hand out what there is, and say whether the answer need not wait any longer."""
        for _ in range(_ROUNDS):
            readings, failed = self._read()
            if failed and failed == len(self._places):
                return True
            size = sum(len(reading.data) for _, _, reading in readings)
            if not readings or (patient and size < self._bytes_min):
                break
            if self._hand_out(readings):
                return True
        return not patient

    def _read(self) -> tuple[list[tuple[Place, Seat, Reading]], int]:
        """Read what could be handed out, and count the partitions that have an error."""
        ready: list[tuple[Place, Seat]] = []
        failed = 0
        for place in self._places:
            seat = self._open(place)
            if seat is None:
                failed += 1
            elif seat.share.phase is Phase.ACTIVE and seat.share.can_acquire():
                ready.append((place, seat))
        readings: list[tuple[Place, Seat, Reading]] = []
        room = self._broker.connections.answer_bytes_max(self._connection)
        if room <= 0:
            return [], failed  # until answers that wait are taken
        bytes_max = min(self._bytes_max, room)
        for place, seat in ready:
            try:
                found = read(
                    seat,
                    committed=self._committed,
                    size_bytes_max=bytes_max // len(ready),
                    at_least_one=not readings,
                )
            except BrokerError as error:
                self._fail(place, error)
                failed += 1
                continue
            if found is not None:
                readings.append((place, seat, found))
        return readings, failed

    def _open(self, place: Place) -> Seat | None:
        """Return a share partition, or None after noting why it cannot be read."""
        seat = self._seats.get(place)
        try:
            if seat is None:
                error = unknown(self._broker, place)
                if error is not None:
                    raise error
                key = ShareKey(self._session.key.group_id, *place)
                seat = self._seats[place] = self._broker.share.partitions.open(key)
            if seat.error is not None:
                raise BrokerError(seat.error.code, seat.error.message)
        except BrokerError as error:
            self._fail(place, error)
            return None
        return seat

    def _fail(self, place: Place, error: BrokerError) -> None:
        self._parts[place] = Part(
            partition_index=place[1], error_code=error.code, error_message=error.message, records=b""
        )

    def _hand_out(self, readings: list[tuple[Place, Seat, Reading]]) -> bool:
        request, partitions = self._request, self._broker.share.partitions
        left = request.max_records
        limited = self._version >= 2 and request.share_acquire_mode == _RECORD_LIMIT
        for place, seat, reading in readings:
            if left <= 0:
                break
            wish = Wish(self._session.key.member_id, left, request.batch_size, limited)
            found = seat.share.acquire(wish, reading.fetched, partitions.now())
            partitions.held(seat)
            if not found:
                continue
            data = reading.only(found)
            seat.partition.bytes_out += len(data)
            self._parts[place] = Part(
                partition_index=place[1],
                records=data,
                acquired_records=[
                    Part.AcquiredRecords(
                        first_offset=piece.start_offset,
                        last_offset=piece.end_offset - 1,
                        delivery_count=piece.delivery_count,
                    )
                    for piece in found
                ],
            )
            left -= sum(piece.end_offset - piece.start_offset for piece in found)
        return left < request.max_records

    # Waiting

    def _park(self) -> None:
        for seat in self._seats.values():
            seat.waiting[self] = None
        self._broker.share.parked(self)
        self._timer = self._broker.call_later(self._request.max_wait_ms / 1000, self._give_up)

    def wake(self) -> None:
        """Try again, once all of a burst is there."""
        if self._timer is not None and not self._woken:
            self._woken = True
            self._broker.connections.soon(self._again)

    def cancel(self) -> None:
        """The member has gone."""
        self._unpark()
        self.pending = None

    def _again(self) -> None:
        self._woken = False
        if self._timer is not None and self._acquire(patient=True):
            self._finish()

    def _give_up(self) -> None:
        if self._timer is not None:
            self._acquire(patient=False)
            self._finish()

    def _unpark(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._broker.share.unparked(self)
        for seat in self._seats.values():
            seat.waiting.pop(self, None)

    # Answering

    def _count(self, what: Asked, places: list[Place]) -> None:
        broker = self._broker
        broker.share.partitions.traffic.count(
            what, {topic_id for topic_id, _ in places} & broker.image.topics.by_id.keys()
        )

    def _finish(self) -> None:
        self._unpark()
        self._fetched = True
        self._answer()

    def _settled(self, outcomes: Outcomes) -> None:
        self._acknowledged = outcomes
        self._answer()

    def _answer(self) -> None:
        outcomes, pending = self._acknowledged, self.pending
        if not self._fetched or outcomes is None or pending is None:
            return
        self.pending = None
        session = self._session
        self._count(Asked.FETCH_FAILURES, [place for place, part in self._parts.items() if part.error_code])
        if self._request.share_session_epoch == INITIAL_EPOCH:
            # The first answer of a session names every partition that could be looked at.
            for place in self._seats:
                self._parts.setdefault(place, Part(partition_index=place[1], records=b""))
        for place, part in self._parts.items():
            session.answers(place, has_records=bool(part.records), has_error=bool(part.error_code))
        for place, error in outcomes.items():
            if place not in self._parts:
                self._parts[place] = Part(partition_index=place[1], records=b"")
            if error is not None:
                part = self._parts[place]
                part.acknowledge_error_code, part.acknowledge_error_message = error.code, error.message
        topics: dict[bytes, Topic] = {}
        for (topic_id, _), part in self._parts.items():
            topics.setdefault(topic_id, Topic(topic_id=topic_id)).partitions.append(part)
        share = self._broker.share
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=self._broker.coordination.config(
                session.key.group_id, "share.record.lock.duration.ms"
            ),
            responses=list(topics.values()),
        )
        name_leaders(response, self._broker, self._listener)
        if self._request.share_session_epoch == FINAL_EPOCH:
            share.close(session.key)
        pending.resolve(response)
