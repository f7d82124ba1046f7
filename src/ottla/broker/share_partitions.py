"""The share partitions on this broker: one for each group and partition that a member reads here.

V1  A share partition is of one epoch of one partition. When that fails, goes, or begins another epoch, whoever waits
    hears of it, and the next fetch begins a new one from the durable state.
V2  What share partitions want done is done here: state is read and written, those who wait are woken or answered.
V3  One timer for all locks, set to the next that runs out. Locks are measured by a clock that never jumps.
V4  A share partition that nobody reads is dropped once nothing of it is under way any more: what is being written, and
    letters about records that were given up.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any, Protocol

from ottla.broker.broker import Broker
from ottla.broker.share_begin import find_reset_offset
from ottla.broker.share_letters import DeadLetters
from ottla.broker.share_states import ShareStates
from ottla.broker.share_traffic import ShareTraffic
from ottla.broker.timing import Timing
from ottla.partition.partition import Partition
from ottla.replicated.decision import Decision
from ottla.replicated.timers import Timers
from ottla.share.acknowledgement import AcknowledgementBatch
from ottla.share.effects import DeadLetter, Freed, Lost, ReadState, Settled, WriteState
from ottla.share.key import ShareKey
from ottla.share.partition import NO_OFFSET, Phase, SharePartition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.write_share_group_state import WriteShareGroupStateRequest

_ReadTopic = ReadShareGroupStateRequest.ReadStateData
_WriteTopic = WriteShareGroupStateRequest.WriteStateData
Settle = Callable[[BrokerError | None], None]


class Waiter(Protocol):
    """A share fetch that waits for records to acquire."""

    def wake(self) -> None:
        """There may be some now, or never any more."""
        ...


class Seat:
    """One share partition, and who waits for it. `error` says why it is of no use any more, `leaving` that nobody reads
    it.
    """

    __slots__ = ("_table", "deadline", "error", "key", "leaving", "partition", "share", "waiting")

    def __init__(
        self, key: ShareKey, partition: Partition, share: SharePartition, table: "SharePartitions"
    ) -> None:
        self.key = key
        self.partition = partition
        self.share = share
        self.error: BrokerError | None = None
        self.waiting: dict[Waiter, None] = {}
        self.deadline: int | None = None
        self.leaving = False
        self._table = table

    @property
    def stale(self) -> bool:
        """Whether the partition is no longer what it was."""
        partition = self.partition
        return (
            partition.error is not None
            or not partition.is_leader
            or partition.leader_epoch != self.share.leader_epoch
        )

    def wake(self, partition: Partition) -> None:
        """The partition has grown, or is gone."""
        if self.stale:
            self._table.drop(self.key, partition.error or BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            self.wake_waiting()

    def wake_waiting(self) -> None:
        """Let those who wait try again, in the order in which they came."""
        for waiter in tuple(self.waiting):
            waiter.wake()


class SharePartitions:
    """The table, by group and partition."""

    def __init__(self, broker: Broker, states: ShareStates, letters: DeadLetters) -> None:
        self._broker = broker
        self._states = states
        self._letters = letters
        self.traffic = ShareTraffic()
        self.loads = Timing()
        self._seats: dict[ShareKey, Seat] = {}
        self._groups: dict[str, set[ShareKey]] = {}
        self._tokens = count(1)
        self._settling: dict[int, Settle] = {}
        self._locks: Timers[ShareKey] = Timers()
        self._timer: Any = None
        self._timer_deadline: int | None = None

    def __len__(self) -> int:
        return len(self._seats)

    @property
    def seats(self) -> list[Seat]:
        """Every share partition that is there."""
        return list(self._seats.values())

    # Who is there

    def find(self, key: ShareKey) -> Seat | None:
        """Return a share partition that is there and of use."""
        seat = self._seats.get(key)
        if seat is not None and seat.stale:
            self.drop(key, seat.partition.error or BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return None
        return seat

    def open(self, key: ShareKey) -> Seat:
        """Return a share partition, which may have to be loaded yet; BrokerError when its partition is not here."""
        partition = self._broker.table.by_id(key.topic_id, key.partition)
        if partition.error is not None:
            raise BrokerError(partition.error.code, partition.error.message)
        if not partition.is_leader:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        seat = self.find(key)
        if seat is None:
            group_id = key.group_id
            config = partial(self._broker.coordination.config, group_id)
            share = SharePartition(*key, partition.leader_epoch, config)
            seat = self._seats[key] = Seat(key, partition, share, self)
            self._groups.setdefault(group_id, set()).add(key)
            partition.readers[seat] = None
        seat.leaving = False
        if seat.share.phase is Phase.EMPTY:
            self._perform(seat, seat.share.open())
        return seat

    def drop(self, key: ShareKey, error: BrokerError) -> None:
        """Forget a share partition; the durable state is all that is left of it."""
        seat = self._seats.pop(key, None)
        if seat is None:
            return
        keys = self._groups[key.group_id]
        keys.discard(key)
        if not keys:
            del self._groups[key.group_id]
        seat.error = error
        seat.share.fence()
        seat.partition.readers.pop(seat, None)
        self._locks.cancel(key)
        self._arm()
        seat.wake_waiting()

    def drop_group(self, group_id: str) -> None:
        """Forget all that a group has: nobody reads for it here."""
        for key in tuple(self._groups.get(group_id, ())):
            seat = self._seats[key]
            seat.leaving = True
            self._leave(seat)

    def _leave(self, seat: Seat) -> None:
        if seat.leaving and not seat.share.busy and self._seats.get(seat.key) is seat:
            unread = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "nobody reads for the group here")
            self.drop(seat.key, unread)

    # What members say

    def acknowledge(
        self, key: ShareKey, member_id: str, batches: Iterable[AcknowledgementBatch], done: Settle
    ) -> None:
        """Take what a member says of its records; `done` hears once that is durable, or why it is refused."""
        seat = self.find(key)
        if seat is None:
            done(BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nothing of this partition was acquired"))
            return
        token = next(self._tokens)
        self._settling[token] = done
        self._perform(seat, seat.share.acknowledge(token, member_id, batches, self.now()))

    def release(self, key: ShareKey, member_id: str) -> None:
        """Take back all that a member holds of a share partition."""
        seat = self.find(key)
        if seat is not None:
            self._perform(seat, seat.share.release(None, member_id, self.now()))

    def held(self, seat: Seat) -> None:
        """A member was handed records: see to it that it does not keep them for ever."""
        if self._seats.get(seat.key) is not seat or seat.share.deadline == seat.deadline:
            return
        seat.deadline = seat.share.deadline
        if seat.deadline is None:
            self._locks.cancel(seat.key)
        else:
            self._locks.set(seat.key, seat.deadline)
        self._arm()

    # What share partitions want

    def _perform(self, seat: Seat, decision: Decision[None]) -> None:
        for effect in decision.after:
            match effect:
                case ReadState():
                    self._read(seat, effect)
                case WriteState():
                    self._write(seat, effect)
                case Settled(token, error):
                    self._settling.pop(token)(error)
                case Freed():
                    seat.wake_waiting()
                case DeadLetter():
                    self._letters.send(effect, partial(self._told, seat, effect))
                case Lost(error=error):
                    if self._seats.get(seat.key) is seat:
                        self.drop(seat.key, error)
        self.held(seat)
        self._leave(seat)

    def _told(self, seat: Seat, letter: DeadLetter) -> None:
        self._perform(seat, seat.share.dead_lettered(letter))

    def _read(self, seat: Seat, effect: ReadState) -> None:
        topics = [_ReadTopic(topic_id=effect.topic_id, partitions=[effect.partition])]
        request = ReadShareGroupStateRequest(group_id=effect.group_id, topics=topics)
        began_s = self._broker.clock.monotonic()

        def read(response: Any) -> None:
            self.loads.took(self._broker.clock.monotonic() - began_s)
            self._loaded(seat, response.results[0].partitions[0])

        self._states.ask_patiently(request, read)

    def _write(self, seat: Seat, effect: WriteState) -> None:
        topics = [_WriteTopic(topic_id=effect.topic_id, partitions=[effect.partition])]
        request = WriteShareGroupStateRequest(group_id=effect.group_id, topics=topics)

        def written(response: Any) -> None:
            part = response.results[0].partitions[0]
            decision = seat.share.persisted(effect.ticket, part.error_code, self.now(), part.error_message)
            self._perform(seat, decision)

        self._states.ask_patiently(request, written)

    def _loaded(self, seat: Seat, state: Any) -> None:
        if seat.share.phase is not Phase.LOADING:
            return
        if state.error_code or state.start_offset != NO_OFFSET:
            self._begin(seat, state, None)
            return
        wish = self._broker.coordination.config(seat.key.group_id, "share.auto.offset.reset")
        now, begin = self._broker.clock.now_ms(), partial(self._begin, seat, state)
        find_reset_offset(self._broker, seat.partition, wish, now, begin)

    def _begin(self, seat: Seat, state: Any, reset_offset: int | BrokerError | None) -> None:
        """Begin with a state that was read. Whatever is wrong with it, the share partition does not stay half made."""
        if seat.share.phase is not Phase.LOADING or self._seats.get(seat.key) is not seat:
            return
        try:
            if isinstance(reset_offset, BrokerError):
                raise reset_offset
            decision = seat.share.loaded(state, reset_offset)
        except BrokerError as error:
            self.drop(seat.key, error)
        except Exception as error:  # noqa: BLE001  # of a kind that nobody foresaw
            self._broker.failed(error)
            self.drop(seat.key, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the state could not be taken in"))
        else:
            self._perform(seat, decision)

    # Time

    def now(self) -> int:
        """Return milliseconds that only grow: locks are measured by them, whatever the wall clock says."""
        return int(self._broker.clock.monotonic() * 1000)

    def _arm(self) -> None:
        deadline = self._locks.next_deadline
        if deadline == self._timer_deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_deadline = deadline
        if deadline is not None:
            self._timer = self._broker.call_later(max(0, deadline - self.now()) / 1000, self._ring)

    def _ring(self) -> None:
        self._timer = self._timer_deadline = None
        now = self.now()
        for key in self._locks.due(now):
            seat = self._seats.get(key)
            if seat is not None:
                seat.deadline = None
                self._perform(seat, seat.share.expire(now))
        self._arm()
