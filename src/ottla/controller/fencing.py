"""What the coming and going of a broker does to its partitions.

B2  A new incarnation leads nothing that another replica could have led in between: its partitions are given up first.
B3  A partition whose only replica comes back is kept as it is, for nobody could have led it meanwhile. After an
    unclean stop its leader epoch is raised, since its log may have lost a tail that consumers have seen. Kafka takes
    the leader away and gives it back in either case; not doing so makes a clean restart free of records, at any
    number of partitions (ADR 0014).
    A directory that it had and that is not among those it registers with (taken out of `log.dirs`, or formatted anew)
    has taken its replicas along: it leads none of them before the directory is back (KIP-858).
B4  The record that takes a broker out comes last, and the one that lets it in first: a log that was cut in between
    leaves a broker that is still to be fenced, never one that is fenced and still leads.
B5  Only partitions of that broker are looked at.
B8  A broker that goes is taken out piece by piece, CHANGES_MAX partitions a decision: everybody else waits for the
    controller meanwhile, and its followers in the quorum give it up when it takes too long. What has lost its leader
    comes first. No two partitions depend on each other, so nothing is seen half done; B4 holds for the whole.
B10 A fence may end half way: the broker is heard again, or another controller takes over. So whoever is in service and
    is heard after that, or for the first time by this controller, is given what has no leader and may be led by it
    (`lead_step`), as one that leaves the fence is; that goes piece by piece as well.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from ottla.controller.census import partitions_of
from ottla.controller.election import change_leaders
from ottla.controller.view import View
from ottla.metadata.directory import is_online
from ottla.metadata.feature import CORDONED_SINCE, DIRECTORIES_SINCE
from ottla.metadata.registration import Broker
from ottla.metadata.topics import NO_LEADER, PartitionState, Topic
from ottla.wire.message import Message
from ottla.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)

FENCE, UNFENCE = 1, -1
CHANGES_MAX = 2_000  # some forty milliseconds
Partitions = Iterator[tuple[Topic, int, PartitionState]]


def leads_any(view: View, broker_id: int) -> bool:
    """True when a broker leads a partition."""
    return any(state.leader == broker_id for _, _, state in _on(view, broker_id))


def fence(view: View, broker: Broker) -> list[Message]:
    """Take a broker out of every in-sync set, and then out of service."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*change_leaders(view, _in_sync(view, broker.id), without=broker.id), change]


def fence_step(view: View, broker: Broker) -> tuple[list[Message], bool]:
    """The next piece of what `fence` does, and whether it is the last (B8)."""
    changes: list[Message] = [*_hand_over(view, broker.id)]
    if len(changes) == CHANGES_MAX:
        return changes, False
    fenced = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*changes, fenced], True


def unfence(view: View, broker: Broker) -> list[Message]:
    """Put a broker into service, and let it lead what has no leader and may be led by it: the first piece of that."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    return [change, *lead_step(view, broker)[0]]


def lead_step(view: View, broker: Broker) -> tuple[list[Message], bool]:
    """The next piece of what has no leader and may be led by a broker, and whether it is the last (B10)."""
    ours, leaderless = view.census.on(broker.id), view.census.leaderless
    if len(leaderless) < len(ours):
        waiting = partitions_of(view.image, [each for each in leaderless if each in ours])
    else:
        waiting = (each for each in _on(view, broker.id) if each[2].leader == NO_LEADER)
    changes = change_leaders(view, waiting, with_broker=broker.id, records_max=CHANGES_MAX)
    return [*changes], len(changes) < CHANGES_MAX


def shutdown_step(view: View, broker: Broker) -> list[Message]:
    """The next piece of what a broker hands over that wants to stop (B8); nothing once it has nothing left.

    Each begins with the record that says so, for a broker may go once all know of what comes behind it.
    """
    changes = _hand_over(view, broker.id)
    if broker.in_controlled_shutdown and not changes:
        return []
    leaves = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
    )
    return [leaves, *changes]


def unregister(view: View, broker: Broker) -> list[Message]:
    """Forget a broker for good."""
    listed = (each for each in _on(view, broker.id) if broker.id in each[2].isr or broker.id in each[2].elr)
    records: list[Message] = [*change_leaders(view, listed, without=broker.id)]
    return [*records, UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)]


def has_much_to_give_up(view: View, broker_id: int) -> bool:
    """True when the last incarnation of a broker still has more than one decision should change (B8)."""
    shared = (each for each in _in_sync(view, broker_id) if not _is_alone(broker_id, each[2]))
    return next(islice(shared, CHANGES_MAX, None), None) is not None


def give_up_partitions(
    view: View, broker_id: int, *, clean: bool, directories: Sequence[bytes] = ()
) -> list[Message]:
    """What the last incarnation of a broker still had; only after a `clean` stop it stays eligible.

    `directories` are those that the new incarnation has, as far as it says.
    """

    def is_kept(state: PartitionState) -> bool:
        return _is_alone(broker_id, state) and is_online(state.directory_of(broker_id), directories)

    if clean or not view.image.features.elr:
        shared = (each for each in _in_sync(view, broker_id) if not is_kept(each[2]))
        records: list[Message] = [*change_leaders(view, shared, without=broker_id)]
    else:
        listed = (
            each
            for each in _on(view, broker_id)
            if (broker_id in each[2].isr or broker_id in each[2].elr) and not is_kept(each[2])
        )
        records = [*change_leaders(view, listed, unclean_stop=broker_id)]
    if not clean:
        records += [
            PartitionChangeRecord(topic_id=topic.id, partition_id=index, leader=broker_id)
            for topic, index, state in _on(view, broker_id)
            if is_kept(state)
        ]
    return records


def newly_offline(view: View, broker: Broker, offline: Sequence[bytes]) -> list[bytes]:
    """Which of a broker's directories it had yesterday and has no more."""
    if view.image.features.metadata_version < DIRECTORIES_SINCE:
        return []
    return [directory for directory in broker.directories if directory in offline]


def lose_directories(view: View, broker: Broker, gone: Sequence[bytes], *, leaving: bool) -> list[Message]:
    """Take the replicas in directories that went offline out, unless the broker is `leaving` with all it has."""
    lost = (each for each in _on(view, broker.id) if each[2].directory_of(broker.id) in gone)
    records: list[Message] = [] if leaving else [*change_leaders(view, lost, without=broker.id)]
    left = [directory for directory in broker.directories if directory not in gone]
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=left)
    return [*records, change]


def cordon(view: View, broker: Broker, cordoned: Sequence[bytes] | None) -> list[Message]:
    """Note which directories of a broker take no new replicas (KIP-1066); None says nothing of them."""
    if (
        cordoned is None
        or view.image.features.metadata_version < CORDONED_SINCE
        or set(cordoned) == set(broker.cordoned or ())
    ):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
    )
    return [change]


def _on(view: View, broker_id: int) -> Partitions:
    return partitions_of(view.image, view.census.on(broker_id))


def _in_sync(view: View, broker_id: int) -> Partitions:
    return (each for each in _on(view, broker_id) if broker_id in each[2].isr)


def _hand_over(view: View, broker_id: int) -> list[PartitionChangeRecord]:
    led, followed = [], []
    for each in _in_sync(view, broker_id):
        if each[2].leader != broker_id:
            followed.append(each)
        else:
            led.append(each)
            if len(led) == CHANGES_MAX:
                break
    return change_leaders(view, chain(led, followed), without=broker_id, records_max=CHANGES_MAX)


def _is_alone(broker_id: int, state: PartitionState) -> bool:
    return state.replicas == state.isr == (broker_id,) and state.leader == broker_id
