"""News: what a message says of leader and epoch, whatever else it is about.

N1  A higher epoch is followed at once, whoever tells of it.
N2  Within an epoch the leader is learnt once. Two leaders of one epoch would mean that votes were lost, and there is
    nothing sensible left to do then.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ottla.raft.election_state import NOBODY
from ottla.raft.follower import Follower
from ottla.raft.leader import Leader
from ottla.raft.replica import Replica
from ottla.raft.settings import PARTITION, TOPIC
from ottla.raft.voters import Address
from ottla.wire.errors import ErrorCode

_STALE = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
_HOPELESS = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_VOTER_KEY)


class Endpoint(Protocol):
    """Where a node listens, as answers tell it."""

    node_id: int
    host: str
    port: int


class NamedEndpoint(Protocol):
    """Where a node listens, as requests tell it: on each of its listeners."""

    name: str
    host: str
    port: int


class LogPartition(Protocol):
    """A partition, as messages name it."""

    partition_index: int


class LogTopic(Protocol):
    """A topic, as messages name it."""

    topic_name: str

    @property
    def partitions(self) -> Sequence[LogPartition]:
        """Its partitions."""
        ...


def addresses_in(replica: Replica, leader_id: int, endpoints: Iterable[Endpoint]) -> tuple[Address, ...]:
    """Where an answer says that the leader listens; an answer that does not say leaves it to the voters."""
    if leader_id == NOBODY:
        return ()
    for each in endpoints:
        if each.node_id == leader_id:
            return (Address(replica.settings.listener, each.host, each.port),)
    return replica.voters.addresses_of(leader_id)


def addresses_of(replica: Replica, leader_id: int, endpoints: Iterable[NamedEndpoint]) -> tuple[Address, ...]:
    """Where a request says that the leader listens; a request that does not say leaves it to the voters."""
    told = tuple(Address(each.name, each.host, each.port) for each in endpoints)
    return told or replica.voters.addresses_of(leader_id)


def hear(replica: Replica, leader_id: int, epoch: int, addresses: tuple[Address, ...], now: int) -> None:
    """Take in who leads which epoch."""
    if leader_id == replica.settings.node_id:
        if epoch > replica.epoch or (epoch == replica.epoch and not replica.has_leader):
            replica.disown(epoch, now)
        return
    if epoch > replica.epoch:
        if leader_id == NOBODY or not replica.become_follower(epoch, leader_id, addresses, now):
            replica.become_unattached(epoch, leader_id, now)
        return
    if epoch < replica.epoch or leader_id == NOBODY:
        return
    known = replica.state.leader_id
    assert known in (NOBODY, leader_id), f"{known} and {leader_id} both lead epoch {epoch}"
    # Where it is already followed, the news is that it can be reached in more ways.
    if known == NOBODY or len(addresses) > len(replica.leader_addresses):
        replica.become_follower(epoch, leader_id, addresses, now)


def weigh(
    replica: Replica,
    code: int,
    leader_id: int,
    epoch: int,
    addresses: tuple[Address, ...],
    now: int,
) -> bool | None:
    """Take in what an answer says of leader and epoch. None when the rest of it is worth reading; else whether the one
    who answered can be asked again at once.
    """
    if epoch < replica.epoch or code == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if epoch > replica.epoch or code in _STALE:
        before = replica.state
        hear(replica, leader_id, epoch, addresses, now)
        # Whoever has nothing new to tell is not asked again at once.
        return replica.state != before
    if leader_id != NOBODY and not replica.has_leader:
        hear(replica, leader_id, epoch, addresses, now)
        return None if code == ErrorCode.NONE and isinstance(replica.role, Follower) else True
    return False if code in _HOPELESS else None


def is_for_us(replica: Replica, cluster_id: str | None) -> bool:
    """True when a request is meant for this cluster, or does not say."""
    return cluster_id is None or cluster_id == replica.settings.cluster_id


def names_our_log(topics: Sequence[LogTopic]) -> bool:
    """True when a message is about the one partition that Raft replicates."""
    return (
        len(topics) == 1
        and topics[0].topic_name == TOPIC
        and len(topics[0].partitions) == 1
        and topics[0].partitions[0].partition_index == PARTITION
    )


def is_meant(replica: Replica, voter_id: int, directory_id: bytes) -> bool:
    """True when a request to a voter names this copy, or no copy."""
    key = replica.key
    return voter_id < 0 or (
        voter_id == key.id and (not any(directory_id) or directory_id == key.directory_id)
    )


def refuse_elector(replica: Replica, sender_id: int, epoch: int) -> ErrorCode:
    """Why a request is refused by which somebody makes itself, or keeps itself, a leader; NONE when it is not."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender_id < 0 else ErrorCode.NONE


def refuse_as_leader(replica: Replica, epoch: int) -> ErrorCode:
    """Why a request is refused that only the leader of `epoch` can serve; NONE when it is not."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if replica.shutdown_deadline is not None else ErrorCode.NONE


def address_for(replica: Replica, listener: str) -> Address | None:
    """Where the leader can be reached by those who came in on `listener`; None when nobody leads, or not there."""
    if replica.has_leader:
        for address in replica.leader_addresses:
            if address.listener == listener:
                return address
    return None
