"""A share partition with a share coordinator that says yes, or nothing until it is told to."""

from types import SimpleNamespace

from ottla.share.acquire import BatchFacts, Fetched, Wish
from ottla.share.effects import DeadLetter, Freed, Lost, Settled, WriteState
from ottla.share.partition import SharePartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateResponse

TOPIC = bytes(range(16))
NOW = 1_800_000_000_000
LOCK_MS = 30_000
DEFAULTS = {
    "errors.deadletterqueue.topic.name": "",
    "share.delivery.count.limit": 5,
    "share.partition.max.record.locks": 2000,
    "share.record.lock.duration.ms": LOCK_MS,
    "share.renew.acknowledge.enable": True,
}
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
State = ReadShareGroupStateResponse.ReadStateResult.PartitionResult


def batches(*ends, start=0):
    """Record batches that end before these offsets, one behind the other."""
    found = []
    for end in ends:
        found.append(BatchFacts(start, end - 1))
        start = end
    return found


def said(first, last, *kinds):
    return SimpleNamespace(first_offset=first, last_offset=last, acknowledge_types=list(kinds))


class Stage:
    """Drives a share partition; writes are durable at once unless `.patient` is set."""

    def __init__(self, start_offset=0, state_batches=(), **settings):
        self.config = {**DEFAULTS, **{key.replace("_", "."): value for key, value in settings.items()}}
        self.partition = SharePartition("group", TOPIC, 3, 7, self.config.__getitem__)
        self.now = NOW
        self.patient = False
        self.waiting = []
        self.written = []
        self.outcomes = {}
        self._unposted = []
        self.lost = []
        self.freed = 0
        self._token = 0
        self.do(self.partition.open())
        parts = [State.StateBatch(first_offset=a, last_offset=b, delivery_state=c, delivery_count=d)
                 for a, b, c, d in state_batches]  # fmt: skip
        self.do(
            self.partition.loaded(
                State(partition=3, state_epoch=2, start_offset=start_offset, state_batches=parts)
            )
        )

    def do(self, decision):
        assert decision.records == ()
        for effect in decision.after:
            if isinstance(effect, WriteState):
                self.written.append(effect.partition)
                self.waiting.append(effect.ticket)
            elif isinstance(effect, Settled):
                assert effect.token not in self.outcomes
                self.outcomes[effect.token] = effect.error and effect.error.code
            elif isinstance(effect, DeadLetter):
                self._unposted.append(effect)
            elif isinstance(effect, Lost):
                self.lost.append(effect.error.code)
            elif isinstance(effect, Freed):
                self.freed += 1
        if not self.patient:
            self.persist()

    def persist(self, code=ErrorCode.NONE):
        while self.waiting:
            self.do(self.partition.persisted(self.waiting.pop(0), code, self.now))

    @property
    def letters(self):
        """What is to be told: (start, end, delivery count, cause) of each letter."""
        return [
            (each.start_offset, each.end_offset, each.delivery_count, each.cause) for each in self._unposted
        ]

    def post(self):
        """Let the letters go."""
        while self._unposted:
            self.do(self.partition.dead_lettered(self._unposted.pop(0)))

    def acquire(self, member, count, read, *, size=10_000, limit=False, aborted=(), at=None):
        """Acquire out of what was read, and return (first, last, delivery count) of each piece."""
        offset = self.partition.next_offset() if at is None else at
        read = [batch for batch in read if batch.last_offset >= offset]
        wish = Wish(member, count, size, limit)
        found = self.partition.acquire(wish, Fetched(offset, read, aborted), self.now)
        return [(piece.start_offset, piece.end_offset - 1, piece.delivery_count) for piece in found]

    def say(self, member, *batches):
        """Acknowledge; return None, the error code, or "waits"."""
        self._token += 1
        self.do(self.partition.acknowledge(self._token, member, batches, self.now))
        return self.outcomes.get(self._token, "waits")

    def release(self, member):
        self._token += 1
        self.do(self.partition.release(self._token, member, self.now))
        return self.outcomes.get(self._token, "waits")

    def pass_time(self, ms):
        self.now += ms
        deadline = self.partition.deadline
        if deadline is not None and deadline <= self.now:
            self.do(self.partition.expire(self.now))

    @property
    def states(self):
        """What last was written: (first, last, state, count) of each batch."""
        return [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in self.written[-1].state_batches
        ]
