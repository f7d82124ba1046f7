"""Which lanes may send, to whom; and when those that may not yet will be looked at again.

A lane with batches is filed in one place:

    ready      its first batch may leave: it is full, has lingered, or is urgent
    lingering  its first batch waits for more records, until `linger.ms` after its first one
    later      its first batch failed a moment ago
    homeless   nobody leads its partition, as far as is known
    nowhere    something has to happen first: an answer, a producer id, a transaction. Who makes it happen, pokes.

G1  Each wake-up costs as much as there is to do, not as there are partitions.
G2  Lanes of one broker take turns, and a request has one batch of each at most.
"""

import heapq
from collections import OrderedDict
from itertools import count
from typing import Protocol

from ottla.client.producer.batch import Batch
from ottla.client.producer.lane import NO_NODE, Lane

NEVER = float("inf")


class Gate(Protocol):
    """Who has a say in what leaves."""

    def may_leave(self, lane: Lane, batch: Batch) -> bool:
        """Whether the first batch of a lane may be sent now."""
        ...

    def leave(self, lane: Lane, batch: Batch) -> int:
        """Number and encode a batch that is sent now; return its size."""
        ...


class Schedule:
    """The lanes that have something to send."""

    def __init__(self, linger_s: float, *, one_at_a_time: bool = False) -> None:
        self._linger_s = linger_s
        self._one_at_a_time = one_at_a_time
        self.urgent = 0
        self.busy: dict[Lane, None] = {}
        self.homeless: dict[Lane, None] = {}
        self._ready: dict[int, OrderedDict[Lane, None]] = {}
        self._lingering: OrderedDict[Batch, None] = OrderedDict()
        self._later: list[tuple[float, int, Lane]] = []
        self._serial = count()

    # What happens

    def added(self, batch: Batch) -> None:
        """Take in a batch that was begun."""
        lane = batch.lane
        self.busy[lane] = None
        if self._linger_s and not self.urgent:
            self._lingering[batch] = None
        else:
            self.poke(lane, batch.created_at)

    def poke(self, lane: Lane, now: float) -> None:
        """Look at a lane again: something has happened to it."""
        if not lane.batches:
            self.busy.pop(lane, None)
            self._unfile(lane)
            return
        self.busy[lane] = None
        first = lane.batches[0]
        if first.retry_at > now and lane.leader_epoch <= first.leader_epoch:
            heapq.heappush(self._later, (first.retry_at, next(self._serial), lane))
        elif first is lane.open and first in self._lingering and now < first.created_at + self._linger_s:
            return
        elif lane.leader == NO_NODE:
            self.homeless[lane] = None
        else:
            ready = self._ready.get(lane.leader)
            if ready is None:
                ready = self._ready[lane.leader] = OrderedDict()
            ready[lane] = None

    def poke_all(self, now: float) -> None:
        """Look at every lane again."""
        for lane in tuple(self.busy):
            self.poke(lane, now)

    def lead(self, lane: Lane, leader: int, epoch: int, now: float) -> None:
        """Take in who leads a partition now."""
        if lane.leader == leader and lane.leader_epoch == epoch:
            return
        self._unfile(lane)
        lane.leader, lane.leader_epoch = leader, epoch
        self.poke(lane, now)

    def _unfile(self, lane: Lane) -> None:
        self.homeless.pop(lane, None)
        ready = self._ready.get(lane.leader)
        if ready is not None:
            ready.pop(lane, None)

    def hurry(self, now: float) -> None:
        """Have nothing linger, neither what does now nor what is begun before `relax`."""
        self.urgent += 1
        lingering = self._lingering
        while lingering:
            batch, _ = lingering.popitem(last=False)
            if batch.lane.batches and batch.lane.batches[0] is batch:
                self.poke(batch.lane, now)

    def relax(self) -> None:
        """Take back a `hurry`."""
        self.urgent -= 1

    def advance(self, now: float) -> None:
        """Look at the lanes whose time has come."""
        lingering, later = self._lingering, self._later
        while lingering:
            batch = next(iter(lingering))
            if batch.created_at + self._linger_s > now:
                break
            del lingering[batch]
            if batch.lane.batches and batch.lane.batches[0] is batch:
                self.poke(batch.lane, now)
        while later and later[0][0] <= now:
            self.poke(heapq.heappop(later)[2], now)

    def next_time(self) -> float:
        """Return when there will be lanes whose time has come, or NEVER."""
        soonest = NEVER
        if self._lingering:
            soonest = next(iter(self._lingering)).created_at + self._linger_s
        if self._later:
            soonest = min(soonest, self._later[0][0])
        return soonest

    # What leaves

    def nodes(self) -> list[int]:
        """Return the brokers for which something is ready."""
        return [node for node, ready in self._ready.items() if ready]

    def take(self, node: int, size_max: int, gate: Gate, now: float) -> list[Batch]:
        """Return what the next request to a broker should carry, which leaves its lanes."""
        ready = self._ready.get(node)
        if not ready:
            return []
        taken: list[Batch] = []
        size = 0
        for _ in range(len(ready)):
            lane, _ = ready.popitem(last=False)
            if not lane.batches or (self._one_at_a_time and lane.in_flight):
                continue
            batch = lane.batches[0]
            if not gate.may_leave(lane, batch):
                continue
            if taken and size + len(batch.buffer) * lane.road.ratio > size_max:
                # It was its turn, so it is the first of the next request.
                ready[lane] = None
                ready.move_to_end(lane, last=False)
                break
            lane.batches.popleft()
            self._lingering.pop(batch, None)
            if lane.open is batch:
                lane.seal()
            lane.in_flight += 1
            batch.leader_epoch = lane.leader_epoch
            batch.sent_at = now
            size += gate.leave(lane, batch)
            taken.append(batch)
        for batch in taken:
            self.poke(batch.lane, now)
        return taken

    def drop(self, batch: Batch) -> None:
        """Take a batch out that will not be sent."""
        lane = batch.lane
        if lane.open is batch:
            lane.seal()
        self._lingering.pop(batch, None)
        if batch in lane.batches:
            lane.batches.remove(batch)
        if not lane.batches:
            self.busy.pop(lane, None)
            self._unfile(lane)
