"""Which queues can send now, to which broker, and when the others have to be checked again.

A queue with batches is in one of these states:

    ready        its first batch can be sent: it is full, has lingered, or is being flushed
    lingering    its first batch waits for more records, until `linger.ms` after its first record
    backing off  its first batch has failed and waits for its retry
    leaderless   its partition has no known leader
    blocked      it waits for a response, a producer id or a transaction; then `recheck` is called

G1  The cost of a wake-up depends on the work to do, not on the number of partitions.
G2  The queues of one broker take turns. A request has at most one batch of each.
"""

import heapq
from collections import OrderedDict
from itertools import count
from typing import Protocol

from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.partition_queue import NO_NODE, PartitionQueue

NEVER = float("inf")


class SendPolicy(Protocol):
    """Decides which batches may be sent, and prepares them."""

    def may_send(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent now."""
        ...

    def prepare_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> int:
        """Number and encode a batch that is sent now. Return its size."""
        ...


class SendSchedule:
    """The queues that have something to send."""

    def __init__(self, linger_s: float, *, one_at_a_time: bool = False) -> None:
        self._linger_s = linger_s
        self._one_at_a_time = one_at_a_time
        self.linger_suspensions = 0
        self.nonempty: dict[PartitionQueue, None] = {}
        self.leaderless: dict[PartitionQueue, None] = {}
        self._ready: dict[int, OrderedDict[PartitionQueue, None]] = {}
        self._lingering: OrderedDict[ProducerBatch, None] = OrderedDict()
        self._backing_off: list[tuple[float, int, PartitionQueue]] = []
        self._serial = count()

    # Changes

    def add_batch(self, batch: ProducerBatch) -> None:
        """Add a batch that was begun."""
        queue = batch.queue
        self.nonempty[queue] = None
        if self._linger_s and not self.linger_suspensions:
            self._lingering[batch] = None
        else:
            self.recheck(queue, batch.created_at)

    def recheck(self, queue: PartitionQueue, now: float) -> None:
        """Check the state of a queue again after a change."""
        if not queue.batches:
            self.nonempty.pop(queue, None)
            self._remove(queue)
            return
        self.nonempty[queue] = None
        first = queue.batches[0]
        if first.retry_at > now and queue.leader_epoch <= first.leader_epoch:
            heapq.heappush(self._backing_off, (first.retry_at, next(self._serial), queue))
        elif first is queue.open and first in self._lingering and now < first.created_at + self._linger_s:
            return
        elif queue.leader == NO_NODE:
            self.leaderless[queue] = None
        else:
            ready = self._ready.get(queue.leader)
            if ready is None:
                ready = self._ready[queue.leader] = OrderedDict()
            ready[queue] = None

    def recheck_all(self, now: float) -> None:
        """Check all queues again."""
        for queue in tuple(self.nonempty):
            self.recheck(queue, now)

    def set_leader(self, queue: PartitionQueue, leader: int, epoch: int, now: float) -> None:
        """Set the leader of a partition."""
        if queue.leader == leader and queue.leader_epoch == epoch:
            return
        self._remove(queue)
        queue.leader, queue.leader_epoch = leader, epoch
        self.recheck(queue, now)

    def _remove(self, queue: PartitionQueue) -> None:
        self.leaderless.pop(queue, None)
        ready = self._ready.get(queue.leader)
        if ready is not None:
            ready.pop(queue, None)

    def suspend_linger(self, now: float) -> None:
        """Let no batch linger until `resume_linger` is called."""
        self.linger_suspensions += 1
        lingering = self._lingering
        while lingering:
            batch, _ = lingering.popitem(last=False)
            if batch.queue.batches and batch.queue.batches[0] is batch:
                self.recheck(batch.queue, now)

    def resume_linger(self) -> None:
        """Undo one `suspend_linger`."""
        self.linger_suspensions -= 1

    def advance(self, now: float) -> None:
        """Check the queues whose time has come."""
        lingering, backing_off = self._lingering, self._backing_off
        while lingering:
            batch = next(iter(lingering))
            if batch.created_at + self._linger_s > now:
                break
            del lingering[batch]
            if batch.queue.batches and batch.queue.batches[0] is batch:
                self.recheck(batch.queue, now)
        while backing_off and backing_off[0][0] <= now:
            self.recheck(heapq.heappop(backing_off)[2], now)

    def next_time(self) -> float:
        """Return when the next queue has to be checked, or NEVER."""
        soonest = NEVER
        if self._lingering:
            soonest = next(iter(self._lingering)).created_at + self._linger_s
        if self._backing_off:
            soonest = min(soonest, self._backing_off[0][0])
        return soonest

    # Sending

    def nodes(self) -> list[int]:
        """Return the brokers for which something is ready."""
        return [node for node, ready in self._ready.items() if ready]

    def take(self, node: int, size_max: int, policy: SendPolicy, now: float) -> list[ProducerBatch]:
        """Remove the batches of the next request to a broker from their queues, and return them."""
        ready = self._ready.get(node)
        if not ready:
            return []
        taken: list[ProducerBatch] = []
        size = 0
        for _ in range(len(ready)):
            queue, _ = ready.popitem(last=False)
            if not queue.batches or (self._one_at_a_time and queue.in_flight):
                continue
            batch = queue.batches[0]
            if not policy.may_send(queue, batch):
                continue
            if taken and size + len(batch.buffer) * queue.topic_queues.ratio > size_max:
                # It is the first one in the next request.
                ready[queue] = None
                ready.move_to_end(queue, last=False)
                break
            queue.batches.popleft()
            self._lingering.pop(batch, None)
            if queue.open is batch:
                queue.seal()
            queue.in_flight += 1
            batch.leader_epoch = queue.leader_epoch
            batch.sent_at = now
            size += policy.prepare_batch(queue, batch)
            taken.append(batch)
        for batch in taken:
            self.recheck(batch.queue, now)
        return taken

    def drop(self, batch: ProducerBatch) -> None:
        """Remove a batch that will not be sent."""
        queue = batch.queue
        if queue.open is batch:
            queue.seal()
        self._lingering.pop(batch, None)
        if batch in queue.batches:
            queue.batches.remove(batch)
        if not queue.batches:
            self.nonempty.pop(queue, None)
            self._remove(queue)
