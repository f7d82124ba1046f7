"""News: what a message says of leader and epoch, whatever else it is about.

N1  A higher epoch is followed at once, whoever tells of it, unless no cluster can have come so far: epochs are numbers
    of 32 bits, and whoever claimed the last one would leave none for the next election.
N2  Within an epoch the leader is learnt once. Whoever names another one is not believed, in a request or in an answer.
N3  The only voter is a majority by itself: nobody else can have been elected, and no higher epoch is heard of.
N4  Anybody can send a request, but only a voter can stand for election or lead. Where the voters are those of the
    settings, nobody else is heard. Voters that stand in the log may be newer elsewhere (KIP-853), but not while this
    replica leads, or its leader answers its fetches: only one that has nobody to go by hears of who is no voter here.
    Answers come from those whom we asked, at the addresses we know; they bring the news that N4 refuses in requests.
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

# How many elections a node may have missed: at one a second, half a year of them.
EPOCHS_MISSED_MAX = 1 << 24
EPOCH_MAX = (1 << 31) - 2
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
    if not is_possible(replica, epoch) or (epoch > replica.epoch and replica.voters.is_only(replica.key)):
        return
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
        if epoch == replica.epoch and contradicts(replica, leader_id):
            return False
        before = replica.state
        hear(replica, leader_id, epoch, addresses, now)
        # Whoever has nothing new to tell is not asked again at once.
        return replica.state != before
    if leader_id != NOBODY and not replica.has_leader:
        hear(replica, leader_id, epoch, addresses, now)
        return None if code == ErrorCode.NONE and isinstance(replica.role, Follower) else True
    return False if code in _HOPELESS else None


def contradicts(replica: Replica, leader_id: int) -> bool:
    """True when this is another leader of our epoch than the one that is known."""
    return leader_id != NOBODY and replica.state.leader_id not in (NOBODY, leader_id)


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


def is_possible(replica: Replica, epoch: int) -> bool:
    """True unless no cluster that this node is part of can have had so many elections."""
    return epoch <= min(replica.epoch + EPOCHS_MISSED_MAX, EPOCH_MAX)


def is_meant(replica: Replica, voter_id: int, directory_id: bytes) -> bool:
    """True when a request to a voter names this copy, or no copy."""
    key = replica.key
    return voter_id < 0 or (
        voter_id == key.id and (not any(directory_id) or directory_id == key.directory_id)
    )


def can_be_elected(replica: Replica, id: int, epoch: int, now: int) -> bool:
    """True unless it is certain, by the voters known here, that this node neither leads `epoch` nor can (N3, N4)."""
    voters, role = replica.voters, replica.role
    if epoch == replica.epoch and id == replica.state.leader_id:
        return True  # a leader that is about to leave the voters leads until that is committed
    if voters.is_only(replica.key):
        return False
    if id in voters.by_id or not voters.by_id:
        return True
    if not replica.membership.can_change and replica.is_voter:
        return False
    return not (isinstance(role, Leader) or (isinstance(role, Follower) and role.is_led(now)))


def refuse_elector(replica: Replica, sender_id: int, epoch: int, now: int) -> ErrorCode:
    """Why a request is refused by which somebody makes itself, or keeps itself, a leader; NONE when it is not."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender_id < 0 or not is_possible(replica, epoch) or not can_be_elected(replica, sender_id, epoch, now):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def refuse_leader(replica: Replica, leader_id: int, epoch: int, now: int) -> ErrorCode:
    """Why a request is refused that says who leads `epoch`; NONE when it is not.

    A claim that contradicts what we know is one peer's word, and no reason to stop: whoever sent it is told.
    """
    code = refuse_elector(replica, leader_id, epoch, now)
    if not code and epoch == replica.epoch and contradicts(replica, leader_id):
        return ErrorCode.INVALID_REQUEST
    return code


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
