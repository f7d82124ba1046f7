"""Voters: who may lead the metadata log, and whose copies count.

In a static quorum the voters stand in `controller.quorum.voters` and in no record. In a dynamic one (kraft.version 1,
KIP-853) they stand in VotersRecords, and a voter is a node id together with the id of the directory that holds its log:
whoever comes back with an empty disk has another directory id, and is no voter any more.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.wire.messages.control import LeaderChangeMessage, VotersRecord
from ottla.wire.uuid import ZERO_UUID

KRAFT_VERSIONS = (0, 1)  # the levels of kraft.version that this software speaks
RECONFIGURATION_SINCE = 1  # the level from which voters stand in the log


class Address(NamedTuple):
    """Where a voter listens."""

    listener: str
    host: str
    port: int


class ReplicaKey(NamedTuple):
    """One copy of the log: a node, and the directory it keeps the copy in; zeros where that is not known."""

    id: int
    directory_id: bytes = ZERO_UUID


class Voter(NamedTuple):
    """One voter."""

    id: int
    directory_id: bytes = ZERO_UUID
    addresses: tuple[Address, ...] = ()
    kraft_versions: tuple[int, int] = KRAFT_VERSIONS

    @property
    def key(self) -> ReplicaKey:
        """The copy that this voter votes for."""
        return ReplicaKey(self.id, self.directory_id)

    def is_copy(self, key: ReplicaKey) -> bool:
        """True when `key` is this voter; a voter whose directory is not known is any copy of its node."""
        return self.id == key.id and self.directory_id in (ZERO_UUID, key.directory_id)

    def supports(self, kraft_version: int) -> bool:
        """True when the voter speaks this level of kraft.version."""
        return self.kraft_versions[0] <= kraft_version <= self.kraft_versions[1]


class Voters(NamedTuple):
    """A set of voters by node id. It never changes; a change makes another one."""

    by_id: Mapping[int, Voter]

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "Voters":
        """The set of these voters."""
        return cls({voter.id: voter for voter in voters})

    @classmethod
    def read(cls, record: VotersRecord) -> "Voters":
        """The voters a control record names."""
        return cls.of(
            Voter(
                each.voter_id,
                each.voter_directory_id,
                tuple(Address(address.name, address.host, address.port) for address in each.endpoints),
                (
                    each.kraft_version_feature.min_supported_version,
                    each.kraft_version_feature.max_supported_version,
                ),
            )
            for each in record.voters
        )

    @property
    def majority(self) -> int:
        """How many voters make a majority."""
        return len(self.by_id) // 2 + 1

    def has(self, key: ReplicaKey) -> bool:
        """True when this copy is a voter."""
        voter = self.by_id.get(key.id)
        return voter is not None and voter.is_copy(key)

    def is_only(self, key: ReplicaKey) -> bool:
        """True when this copy is a voter and there is no other."""
        return len(self.by_id) == 1 and self.has(key)

    def addresses_of(self, id: int) -> tuple[Address, ...]:
        """Where a voter listens; nowhere when it is none."""
        voter = self.by_id.get(id)
        return voter.addresses if voter is not None else ()

    def supports(self, kraft_version: int) -> bool:
        """True when every voter speaks this level of kraft.version."""
        return all(voter.supports(kraft_version) for voter in self.by_id.values())

    def differs_on(self, voter: Voter) -> bool:
        """True when this copy is a voter, but is written down in another way than it is."""
        known = self.by_id.get(voter.id)
        return known is not None and known.is_copy(voter.key) and known != voter

    def plus(self, voter: Voter) -> "Voters | None":
        """The set with one voter more; None when its node has one already."""
        return None if voter.id in self.by_id else Voters({**self.by_id, voter.id: voter})

    def minus(self, key: ReplicaKey) -> "Voters | None":
        """The set without a voter; None when the copy is none, or is the last."""
        known = self.by_id.get(key.id)
        if known is None or known.key != key or len(self.by_id) == 1:
            return None
        return Voters({id: voter for id, voter in self.by_id.items() if id != key.id})

    def changed(self, voter: Voter, *, any_directory: bool = False) -> "Voters | None":
        """The set with a voter written down anew; None when it is none.

        A static set does not know directories, so `any_directory` takes the one that the voter names.
        """
        known = self.by_id.get(voter.id)
        if known is None or not (any_directory or known.is_copy(voter.key)):
            return None
        return Voters({**self.by_id, voter.id: voter})

    def record(self) -> VotersRecord:
        """The control record that names these voters."""
        kind = VotersRecord.Voter
        return VotersRecord(
            voters=[
                kind(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[
                        kind.Endpoint(name=a.listener, host=a.host, port=a.port) for a in voter.addresses
                    ],
                    kraft_version_feature=kind.KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions[0],
                        max_supported_version=voter.kraft_versions[1],
                    ),
                )
                for voter in self.by_id.values()
            ]
        )

    def leader_change(self, leader_id: int, granting: Iterable[int] | None = None) -> LeaderChangeMessage:
        """The control record that opens the epoch of a leader; `granting` voted for it, or else all did."""
        kind = LeaderChangeMessage.Voter
        return LeaderChangeMessage(
            leader_id=leader_id,
            voters=[kind(voter_id=id) for id in self.by_id],
            granting_voters=[kind(voter_id=id) for id in (self.by_id if granting is None else granting)],
        )


NO_VOTERS = Voters({})
