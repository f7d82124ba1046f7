"""The leader's half of a partition: watch the followers, say what is committed, propose who is in sync.

L3  The high watermark never falls within an epoch.
L4  It is the least end offset among those in sync, those proposed to be, and those who are about to join them: our own
    durable end is one of these. It stands still while fewer are in sync than `min.insync.replicas` asks for (KIP-966).
L7  A follower joins once it has all that is committed, and something of this epoch's beginning: else a record between
    our watermark and our end could be lost with us. Only one that lives, is not about to stop, and is in the life that
    the metadata knows may join.
L8  One proposal is under way at a time. Nobody who is proposed to leave is left out of account before the controller
    has agreed; whoever is proposed to join counts from that moment on (the "maximal" set of KIP-497).

    STEADY --expansion(), shrinkage()--> PROPOSED --agreed(), refused(), begin()--> STEADY

No clock is read here: `now_ms` comes with each fetch.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.metadata.topics import PartitionState
from ottla.partition.follower import Follower
from ottla.wire.errors import BrokerError, ErrorCode

# Whether a broker, in a life of this epoch (None when it has not said), may be in sync.
Eligible = Callable[[int, int | None], bool]

# Answers after which it is certain that a proposal was not carried out.
_CERTAIN = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# Answers after which the metadata will say what has happened.
_FINAL = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class Proposal(NamedTuple):
    """Who should be in sync: brokers with their epochs, as AlterPartition wants them."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


class Leadership:
    """What the leader of a partition with several replicas keeps in mind."""

    __slots__ = (
        "_eligible",
        "_node_id",
        "_proposed",
        "epoch_start_offset",
        "followers",
        "isr",
        "lag_ms_max",
        "leader_epoch",
        "min_isr",
        "now_ms",
        "partition_epoch",
        "replicas",
    )

    def __init__(self, node_id: int, eligible: Eligible, *, lag_ms_max: int, min_isr: int) -> None:
        self._node_id = node_id
        self._eligible = eligible
        self._proposed: Proposal | None = None
        self.lag_ms_max = lag_ms_max
        self.min_isr = min_isr
        self.followers: dict[int, Follower] = {}
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = 0
        self.now_ms = 0  # when anything was last heard of the followers

    def begin(self, state: PartitionState, end_offset: int, now_ms: int) -> None:
        """Follow the metadata: another epoch, other replicas, another set in sync."""
        if state.partition_epoch < self.partition_epoch:
            return  # the controller's answer to our proposal was here before
        self.now_ms = now_ms
        new_leader = self.leader_epoch < 0
        self.replicas = state.replicas
        self.isr = frozenset(state.isr)
        self._proposed = None
        self.partition_epoch = state.partition_epoch
        self.followers = {
            id: self.followers.get(id) or Follower(id) for id in state.replicas if id != self._node_id
        }
        if state.leader_epoch > self.leader_epoch:
            self.leader_epoch = state.leader_epoch
            self.epoch_start_offset = end_offset
            for id, follower in self.followers.items():
                follower.begin_epoch(now_ms, end_offset, in_sync=id in self.isr, new_leader=new_leader)

    @property
    def min_isr_in_force(self) -> int:
        """How many have to be in sync: no more than there are replicas."""
        return min(self.min_isr, len(self.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """Whether too few are in sync to acknowledge anything to those who ask for all."""
        return len(self.isr) < self.min_isr_in_force

    @property
    def is_proposing(self) -> bool:
        """Whether the controller has yet to answer."""
        return self._proposed is not None

    @property
    def counted(self) -> frozenset[int]:
        """Those whose end holds the watermark back: in sync, or proposed to be."""
        proposed = self._proposed
        return self.isr if proposed is None else self.isr | {id for id, _ in proposed.isr}

    def fetched(
        self, id: int, offset: int, start_offset: int, now_ms: int, end_offset: int, broker_epoch: int
    ) -> bool:
        """Take in a follower's fetch; say whether it has come further. `end_offset` is our own."""
        follower = self.followers.get(id)
        if follower is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {id} has no replica of this partition that we know of",
            )
        self.now_ms = now_ms
        before = follower.end_offset
        follower.fetched(offset, start_offset, now_ms, end_offset, broker_epoch)
        return follower.end_offset != before

    def watermark(self, durable_offset: int, end_offset: int, now_ms: int) -> int:
        """What the followers and our own durable end allow the high watermark to be; -1 when it may not move (L4)."""
        if self.is_under_min_isr:
            return -1
        counted = self.counted
        least = durable_offset
        for id, follower in self.followers.items():
            if follower.end_offset < least and (
                id in counted
                or (
                    follower.is_caught_up(end_offset, now_ms, self.lag_ms_max)
                    and self._eligible(id, follower.broker_epoch)
                )
            ):
                least = follower.end_offset
        return least

    def start_offset(self, own: int, lives: Callable[[int], bool]) -> int:
        """The least start offset of all replicas that live: up to there DeleteRecords is done."""
        return min([own, *(each.start_offset for each in self.followers.values() if lives(each.id))])

    # Who is in sync

    def expansion(self, id: int, high_watermark: int, own_epoch: int) -> Proposal | None:
        """Propose a follower that has caught up (L7)."""
        follower = self.followers.get(id)
        if (
            follower is None
            or self._proposed is not None
            or id in self.isr
            or follower.end_offset < max(high_watermark, self.epoch_start_offset)
            or not self._eligible(id, follower.broker_epoch)
        ):
            return None
        return self._propose(self.isr | {id}, own_epoch)

    def shrinkage(self, end_offset: int, now_ms: int, own_epoch: int) -> Proposal | None:
        """Propose to go on without those who are behind, or silent, for too long."""
        if self._proposed is not None:
            return None
        late = {
            id
            for id in self.isr
            if id != self._node_id
            and (
                id not in self.followers
                or not self.followers[id].is_caught_up(end_offset, now_ms, self.lag_ms_max)
            )
        }
        return self._propose(self.isr - late, own_epoch) if late else None

    def _propose(self, isr: frozenset[int], own_epoch: int) -> Proposal:
        epochs = []
        for id in sorted(isr):
            follower = self.followers.get(id)
            known = own_epoch if id == self._node_id else None if follower is None else follower.broker_epoch
            epochs.append((id, -1 if known is None else known))
        self._proposed = Proposal(self.leader_epoch, self.partition_epoch, tuple(epochs))
        return self._proposed

    def agreed(
        self, proposal: Proposal, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int
    ) -> bool:
        """The controller has written it down; say whether that is news. An answer to what is past is not."""
        if proposal is not self._proposed or leader_epoch != self.leader_epoch:
            return False
        if partition_epoch < self.partition_epoch:
            return False
        self._proposed = None
        self.isr = frozenset(isr)
        self.partition_epoch = partition_epoch
        return True

    def refused(self, proposal: Proposal, code: ErrorCode) -> bool:
        """The controller has not written it down, or cannot say; True when it is to be asked again."""
        if proposal is not self._proposed:
            return False
        if code in _CERTAIN:
            self._proposed = None
            return False
        return code not in _FINAL
