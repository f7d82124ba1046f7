"""Groups and the offsets they committed, under Kafka's names and under those of kafka_exporter.

G1  A group is told of by its coordinator alone, so that sums over the brokers of a cluster count it once.
G2  A page looks at every group and every offset once. It pauses on the way, for there may be very many, and shows those
    that are there when it comes by.
G3  Lag is told where the coordinator has a replica of the partition, which may be none at all in a cluster: how far the
    group is behind the high watermark that this replica knows, and never less than 0. A sum is told only where all of
    its parts are known.
"""

from collections.abc import Iterator

from ottla.broker.broker import Broker
from ottla.broker.metrics.coordinators import coordinators
from ottla.groups.group import Kind
from ottla.groups.machine import Groups
from ottla.http.metrics.text import Family, counter, gauge, label_text

_PREFIX = "kafka_server_group_coordinator_metrics_"
_MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
# How much is looked at between two pauses.
_GROUPS_AT_ONCE = 200
_OFFSETS_AT_ONCE = 1_000

_STATES = {
    Kind.CLASSIC: ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"),
    Kind.CONSUMER: ("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
    Kind.SHARE: ("Empty", "Stable", "Dead"),
    Kind.STREAMS: ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"),
}


class _Sums:
    """What the walk over all groups adds up."""

    def __init__(self) -> None:
        self.states = {(kind, state): 0 for kind, states in _STATES.items() for state in states}
        self.offsets = 0

    def count(self, kind: Kind) -> int:
        return sum(count for (each, _), count in self.states.items() if each is kind)


def groups(broker: Broker) -> Iterator[Family | None]:
    """Everything about groups; None where the page may pause."""
    hosted = broker.coordination.groups
    yield from coordinators(_PREFIX, hosted)
    sums = _Sums()
    members = gauge("kafka_consumergroup_members", "Members of the group.")
    offset = gauge("kafka_consumergroup_current_offset", "Offset that the group committed.")
    offset_sum = gauge("kafka_consumergroup_current_offset_sum", "Sum of the offsets committed for a topic.")
    lag = gauge(
        "kafka_consumergroup_lag",
        "Records that the group is behind, where its coordinator has a replica of the partition.",
    )
    lag_sum = gauge(
        "kafka_consumergroup_lag_sum",
        "Sum of kafka_consumergroup_lag over a topic, where that of each partition is known.",
    )
    for machine in hosted.machines:
        for number, group_id in enumerate(tuple(machine.shelf.groups)):
            if number % _GROUPS_AT_ONCE == 0:
                yield None
            group = machine.shelf.groups.get(group_id)
            if group is None:
                continue
            state = group.kind, group.state
            sums.states[state] = sums.states.get(state, 0) + 1
            members.add(len(group.members), consumergroup=group_id)
            for _ in _offsets(broker, machine, group_id, (offset, offset_sum, lag, lag_sum), sums):
                yield None
    yield from (members, offset, offset_sum, lag, lag_sum)
    yield from _counts(sums)
    yield from _tally(broker)


def _offsets(
    broker: Broker, machine: Groups, group_id: str, families: tuple[Family, ...], sums: _Sums
) -> Iterator[None]:
    offset, offset_sum, lag, lag_sum = families
    partitions = broker.table.partitions
    seen = 0
    for topic, committed in tuple(machine.offsets.committed(group_id).items()):
        total = behind = known = 0
        for index, each in committed.items():
            labels = label_text({"consumergroup": group_id, "topic": topic, "partition": index})
            offset.samples.append((labels, each.offset))
            total += each.offset
            partition = partitions.get((topic, index))
            if partition is not None and partition.error is None:
                left = max(0, partition.high_watermark - each.offset)
                lag.samples.append((labels, left))
                behind += left
                known += 1
        offset_sum.add(total, consumergroup=group_id, topic=topic)
        if known == len(committed):
            lag_sum.add(behind, consumergroup=group_id, topic=topic)
        sums.offsets += len(committed)
        seen += len(committed)
        if seen >= _OFFSETS_AT_ONCE:
            seen = 0
            yield None


def _counts(sums: _Sums) -> Iterator[Family]:
    yield gauge(_MANAGER + "numoffsets", "Offsets that groups committed.").add(sums.offsets)
    yield gauge(_MANAGER + "numgroups", "Groups of the classic protocol.").add(sums.count(Kind.CLASSIC))
    for state in _STATES[Kind.CLASSIC]:
        family = gauge(_MANAGER + f"numgroups{state.lower()}", f"Groups of the classic protocol in {state}.")
        yield family.add(sums.states[Kind.CLASSIC, state])
    by_protocol = gauge(_PREFIX + "group_count", "Groups by protocol.")
    for kind in Kind:
        by_protocol.add(sums.count(kind), protocol=kind.value)
    yield by_protocol
    for kind in (Kind.CONSUMER, Kind.SHARE, Kind.STREAMS):
        by_state = gauge(_PREFIX + f"{kind.value}_group_count", f"Groups of kind {kind.value} by state.")
        for state in _STATES[kind]:
            by_state.add(sums.states[kind, state], state=state)
        yield by_state


def _tally(broker: Broker) -> Iterator[Family]:
    tally = broker.coordination.tally
    rebalances = tally.rebalances
    for name, help, value in (
        ("offset_commit_count", "Offsets committed.", tally.commits),
        ("offset_expiration_count", "Offsets expired.", tally.expirations),
        ("offset_deletion_count", "Offsets deleted by request.", tally.deletions),
        ("group_completed_rebalance_count", "Rebalances of classic groups.", rebalances[Kind.CLASSIC]),
        ("consumer_group_rebalance_count", "Rebalances of consumer groups.", rebalances[Kind.CONSUMER]),
        ("share_group_rebalance_count", "Rebalances of share groups.", rebalances[Kind.SHARE]),
        ("streams_group_rebalance_count", "Rebalances of streams groups.", rebalances[Kind.STREAMS]),
    ):
        yield counter(_PREFIX + name, help).add(value)
