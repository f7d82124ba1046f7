"""Who leads and who follows, of the partitions that have replicas elsewhere too.

P4  A role follows the metadata, and nothing else: `assume` is called with every committed state of a partition.
P5  Whoever follows is known to a fetcher of its leader (`Following`); whoever leads, or has no leader, to none.
P6  What a leader proposes goes to the controller, one proposal a partition at a time; the answer comes back by
    `answered`, or is overtaken by the metadata.

A partition whose only replica is here leads without any of this, and costs nothing for it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ottla.metadata.image import Image
from ottla.metadata.topics import NO_LEADER, PartitionState
from ottla.partition.leadership import Leadership, Proposal
from ottla.partition.partition import Partition
from ottla.partition.throttle import Throttles
from ottla.wire.errors import BrokerError, ErrorCode

_LAG = "replica.lag.time.max.ms"


class Following(Protocol):
    """What fetches for followers."""

    def follow(self, partition: Partition, leader: int) -> None:
        """Fetch a partition from its leader, from its own end on, in its present epoch."""
        ...

    def leave(self, partition: Partition) -> None:
        """Fetch a partition no more."""
        ...


class Proposing(Protocol):
    """What asks the controller to write down who is in sync."""

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Ask; the answer goes to `Roles.agreed` or `Roles.refused`."""
        ...


class Roles:
    """The roles of this node's replicas. `values` are the broker's settings in force."""

    def __init__(
        self, node_id: int, now_ms: Callable[[], int], values: Callable[[], Mapping[str, Any]]
    ) -> None:
        self.node_id = node_id
        self.image: Image | None = None
        self.broker_epoch = -1
        # Whether the metadata knows this life of the node. Until then it leads nothing that others could have led: what
        # it wrote in its last life, and lost, would get other bytes in the same epoch, which no follower could tell.
        self.is_registered = True
        self.leading: dict[Partition, None] = {}
        self._refused: dict[Partition, None] = {}
        # Told of each partition that this node has led and leads no more.
        self.on_lost: Callable[[Partition], None] | None = None
        self.on_led: Callable[[Partition], None] | None = None
        self.expansions = self.shrinkages = self.failures = 0
        self.throttles = Throttles(node_id, now_ms, values)
        self._now_ms = now_ms
        self._values = values
        self._following: Following | None = None
        self._proposing: Proposing | None = None

    def attach(self, following: Following, proposing: Proposing) -> None:
        """Say who fetches and who asks the controller; both come to be after the partitions."""
        self._following = following
        self._proposing = proposing

    # Roles

    def assume(self, partition: Partition, state: PartitionState, image: Image) -> None:
        """Take the role that the metadata gives to this node's replica."""
        self.image = image
        if state.replicas == (self.node_id,):
            self._stop_following(partition)
            self.leading.pop(partition, None)
            partition.lead(state.leader_epoch)
            partition.advance(partition.durable_offset)  # which may wait for nobody else any more
        elif state.leader == self.node_id and self.is_registered:
            self._lead(partition, state)
        else:
            self._follow(partition, state)

    def _lead(self, partition: Partition, state: PartitionState) -> None:
        self._stop_following(partition)
        self.leading[partition] = None
        leadership = partition.leadership
        if leadership is None:
            leadership = Leadership(
                self.node_id,
                lambda broker, broker_epoch: self.may_be_in_sync(broker, broker_epoch, partition),
                lag_ms_max=self._values()[_LAG],
                min_isr=partition.log.config.min_insync_replicas,
            )
        leadership.begin(state, partition.log.end_offset, self._now_ms())
        new = not partition.is_leader
        partition.lead(state.leader_epoch, leadership)
        self._reconsider(partition)
        if new and self.on_led is not None:
            self.on_led(partition)

    def _follow(self, partition: Partition, state: PartitionState) -> None:
        self.leading.pop(partition, None)
        led = partition.is_leader
        changed = led or partition.leader_epoch != state.leader_epoch
        partition.follow(state.leader_epoch)
        if led and self.on_lost is not None:
            self.on_lost(partition)
        if state.leader in (NO_LEADER, self.node_id):
            self._stop_following(partition)
        elif changed and self._following is not None:
            self._following.follow(partition, state.leader)

    def _stop_following(self, partition: Partition) -> None:
        if not partition.is_leader and self._following is not None:
            self._following.leave(partition)

    def gone(self, partition: Partition) -> None:
        """A partition is no more, or not here, or its directory failed."""
        self.leading.pop(partition, None)
        if self._following is not None:
            self._following.leave(partition)

    def may_be_in_sync(self, id: int, broker_epoch: int | None, partition: Partition) -> bool:
        """Whether a broker lives, is not about to stop, is in the life that the metadata knows (KIP-841, 903), and has
        the directory that its replica is in (KIP-858): one that failed may have been level, and says nothing more.
        """
        if self.image is None:
            return False
        broker = self.image.brokers.get(id)
        if (
            broker is None
            or broker.fenced
            or broker.in_controlled_shutdown
            or broker_epoch is None
            or broker_epoch not in (-1, broker.epoch)
        ):
            return False
        state = self.image.partition(partition.topic, partition.index)
        return state is None or broker.has_online(state.directory_of(id))

    def lives(self, id: int) -> bool:
        """Whether a broker is there at all."""
        broker = None if self.image is None else self.image.brokers.get(id)
        return broker is not None and not broker.fenced

    # In sync

    def fetched(
        self, partition: Partition, id: int, offset: int, start_offset: int, broker_epoch: int
    ) -> None:
        """A follower has all before `offset`: it may be in sync by that, and more may be committed."""
        leadership = partition.leadership
        if leadership is None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        now_ms = self._now_ms()
        end_offset = partition.log.end_offset
        moved = leadership.fetched(id, offset, start_offset, now_ms, end_offset, broker_epoch)
        if id not in leadership.isr:
            self._propose(partition, leadership.expansion(id, partition.high_watermark, self.broker_epoch))
        if moved:
            partition.raise_watermark(leadership.watermark(partition.durable_offset, end_offset, now_ms))

    def shrink(self) -> None:
        """Propose to go on without those who are behind; call it twice in the time that they are given."""
        now_ms = self._now_ms()
        lag_ms_max = self._values()[_LAG]
        for partition in tuple(self.leading):
            leadership = partition.leadership
            if leadership is not None:
                leadership.lag_ms_max = lag_ms_max
                leadership.now_ms = now_ms
                self._propose(
                    partition, leadership.shrinkage(partition.log.end_offset, now_ms, self.broker_epoch)
                )

    def brokers_changed(self, image: Image) -> None:
        """Some broker came, went or was fenced: who was waited for may not be any more, and who was not may be now."""
        self.image = image
        for partition in tuple(self.leading):
            self._reconsider(partition)

    def _reconsider(self, partition: Partition) -> None:
        """See what is committed by now, and who may join: a follower that is level has nothing more to tell us."""
        leadership = partition.leadership
        assert leadership is not None
        partition.advance(partition.durable_offset)
        for id in leadership.followers:
            if id not in leadership.isr and not leadership.is_proposing:
                self._propose(
                    partition, leadership.expansion(id, partition.high_watermark, self.broker_epoch)
                )

    def _propose(self, partition: Partition, proposal: Proposal | None) -> None:
        if proposal is not None and self._proposing is not None:
            self._proposing.propose(partition, proposal)

    def agreed(
        self,
        partition: Partition,
        proposal: Proposal,
        isr: Iterable[int],
        leader_epoch: int,
        partition_epoch: int,
    ) -> None:
        """The controller has written a proposal down."""
        leadership = partition.leadership
        if leadership is None:
            return
        before = leadership.isr
        if not leadership.agreed(proposal, tuple(isr), leader_epoch, partition_epoch):
            return
        self.expansions += bool(leadership.isr - before)
        self.shrinkages += bool(before - leadership.isr)
        self._reconsider(partition)

    def refused(self, partition: Partition, proposal: Proposal, code: ErrorCode) -> None:
        """The controller has not written it down, or nobody knows; some of these are asked again."""
        self.failures += 1
        leadership = partition.leadership
        if leadership is None:
            return
        if leadership.refused(proposal, code):
            self._propose(partition, proposal)
        elif not leadership.is_proposing:
            # It was certainly not carried out. By the time the followers have moved, or the brokers, it may be.
            self._refused[partition] = None

    def try_again(self) -> None:
        """Propose again what a controller has refused; call it now and then."""
        refused, self._refused = self._refused, {}
        for partition in [each for each in refused if each in self.leading]:
            self._reconsider(partition)
