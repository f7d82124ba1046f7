"""Leader: what the leader of an epoch knows of the others, and what follows from it.

R1  An epoch has one leader: it has the votes of a majority, and nobody votes twice in an epoch.
R5  A record is committed when a majority of the voters has it on disk, and so has one of the leader's own epoch
    behind it (Raft, §5.4.2): records of older epochs, however often copied, could still be replaced.
R6  A leader that hears nothing of a majority for one and a half fetch timeouts steps down: somebody else may lead.
R7  Whoever fetches is believed what it calls itself, so what is kept of those who are no voters is bounded: an observer
    that has not been here for five minutes is forgotten when the next new one comes, and so is the one that was away
    for longest once there are OBSERVERS_MAX. One that was forgotten is known again with its next fetch.
"""

from itertools import islice
from typing import TYPE_CHECKING

from ottla.raft.election_state import ElectionState
from ottla.raft.parking import ParkedFetches
from ottla.raft.progress import UNKNOWN, Progress
from ottla.raft.voters import ReplicaKey, Voters

if TYPE_CHECKING:
    from ottla.raft.voter_change import VoterChange

OBSERVER_SESSION_MS = 300_000
OBSERVERS_MAX = 4_096
CAUGHT_UP_WITHIN_MS = 3_600_000


class Leader:
    """The leader of an epoch."""

    __slots__ = (
        "_check_timeout_ms",
        "_heard",
        "begin_deadline",
        "begin_interval_ms",
        "change",
        "check_deadline",
        "epoch_start_offset",
        "granting",
        "high_watermark",
        "is_open",
        "key",
        "observers",
        "own",
        "parked",
        "resigns",
        "told_version",
        "told_voters",
        "voters",
    )

    def __init__(
        self,
        key: ReplicaKey,
        voters: Voters,
        granting: set[int],
        epoch_start_offset: int,
        now: int,
        fetch_timeout_ms: int,
    ) -> None:
        self.key = key
        self.granting = granting
        self.epoch_start_offset = epoch_start_offset
        self.is_open = False  # until the first record of the epoch is written
        # Unknown until a record of this epoch is committed: only then is it sure not to be below what others know.
        self.high_watermark = UNKNOWN
        self.voters = {voter.id: Progress(voter.key) for voter in voters.by_id.values()}
        self.observers: dict[ReplicaKey, Progress] = {}  # who fetched last comes last
        self.own = self.voters[key.id]
        self._heard: set[int] = set()
        self._check_timeout_ms = fetch_timeout_ms * 3 // 2
        self.check_deadline = now + self._check_timeout_ms
        self.begin_interval_ms = fetch_timeout_ms // 2
        self.begin_deadline = now
        self.change: VoterChange | None = None
        self.resigns = False
        self.parked = ParkedFetches()
        # Where voters do not stand in the log: what they told of themselves, for the upgrade that writes them there.
        self.told_voters: Voters | None = None
        self.told_version: int | None = None

    @property
    def is_established(self) -> bool:
        """True once a record of this epoch is committed."""
        return self.high_watermark != UNKNOWN

    def grants(self, state: ElectionState, key: ReplicaKey, *, is_current: bool, is_pre_vote: bool) -> bool:
        """True when `key` may have the vote: nobody may."""
        return False

    def adopt(self, voters: Voters) -> None:
        """Count by these voters from now on; what is known of a copy goes with it."""
        known = {}
        for voter in voters.by_id.values():
            progress = self._find(voter.key) or Progress(voter.key)
            progress.key = voter.key
            known[voter.id] = progress
            self.observers.pop(voter.key, None)
        for id, progress in self.voters.items():
            if known.get(id) is not progress:
                self.observers.setdefault(progress.key, progress)
        self.voters = known
        self._heard &= known.keys()

    def is_voter(self, key: ReplicaKey) -> bool:
        """True when this copy counts."""
        progress = self.voters.get(key.id)
        return progress is not None and _is_copy(progress.key, key)

    def fetched(self, key: ReplicaKey, offset: int, leader_end_offset: int, now: int) -> None:
        """Note that a copy has all before `offset`."""
        if key.id < 0:
            return  # a tool that reads along
        assert key.id != self.key.id, "a leader fetches from nobody"
        progress = self._find(key)
        if progress is None:
            self._make_room(now)
            progress = Progress(key)
        if not self.is_voter(key):
            self.observers.pop(key, None)
            self.observers[key] = progress
        progress.fetch(offset, leader_end_offset, now)
        self.heard_from(key, now)

    def heard_from(self, key: ReplicaKey, now: int) -> None:
        """Note a sign of life; those of a majority put off the moment at which the leader gives up."""
        if not self.is_voter(key):
            return
        self._heard.add(key.id)
        # The leader itself is one of the majority, unless it is about to leave the voters.
        needed = len(self.voters) // 2 + 1 - (self.key.id in self.voters)
        if len(self._heard) >= needed:
            self._heard.clear()
            self.check_deadline = now + self._check_timeout_ms

    def has_lost_majority(self, now: int) -> bool:
        """True when too few were heard from for too long."""
        return len(self.voters) > 1 and now >= self.check_deadline

    def advance(self) -> bool:
        """Raise the high watermark to what a majority has; True when that is news."""
        offsets = sorted((progress.end_offset for progress in self.voters.values()), reverse=True)
        offset = offsets[len(offsets) // 2]
        if offset <= self.epoch_start_offset or offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def is_caught_up(self, key: ReplicaKey, now: int) -> bool:
        """True when an observer has been at the end of the log, and was here lately."""
        progress = self.observers.get(key)
        return (
            progress is not None
            and progress.caught_up_ms != UNKNOWN
            and progress.fetched_ms > now - CAUGHT_UP_WITHIN_MS
        )

    def silent(self, now: int) -> list[ReplicaKey]:
        """Voters that have not fetched for a while, and may not know who leads."""
        return [
            progress.key
            for id, progress in self.voters.items()
            if id != self.key.id
            and (progress.fetched_ms == UNKNOWN or now - progress.fetched_ms >= self.begin_interval_ms)
        ]

    def successors(self) -> list[ReplicaKey]:
        """The other voters, the longest log first."""
        others = [progress for id, progress in self.voters.items() if id != self.key.id]
        others.sort(key=lambda progress: (-progress.end_offset, progress.key))
        return [progress.key for progress in others]

    def _make_room(self, now: int) -> None:
        """Let observers go for a new one (R7): those who were here last stay."""
        observers = self.observers
        for key, progress in tuple(islice(observers.items(), 2)):
            if progress is not self.own and (
                len(observers) >= OBSERVERS_MAX or now - progress.fetched_ms >= OBSERVER_SESSION_MS
            ):
                del observers[key]

    def forget_observers(self, now: int) -> None:
        """Forget those who have not been here for long."""
        gone = [
            key
            for key, progress in self.observers.items()
            if progress is not self.own and now - progress.fetched_ms >= OBSERVER_SESSION_MS
        ]
        for key in gone:
            del self.observers[key]

    def _find(self, key: ReplicaKey) -> Progress | None:
        progress = self.voters.get(key.id)
        if progress is not None and _is_copy(progress.key, key):
            return progress
        return self.observers.get(key)


def _is_copy(known: ReplicaKey, key: ReplicaKey) -> bool:
    return not any(known.directory_id) or known.directory_id == key.directory_id
