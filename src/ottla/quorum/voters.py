"""Voters: who may lead the metadata log.

In a static quorum the voters stand in `controller.quorum.voters` and in no record. In a dynamic one (kraft.version 1,
KIP-853) they stand in VotersRecords, and a voter is a node id together with the id of the directory that holds its log.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.metadata.feature import KRAFT_VERSION, SUPPORTED
from ottla.wire.messages.control import LeaderChangeMessage, VotersRecord
from ottla.wire.uuid import ZERO_UUID


class Address(NamedTuple):
    """Where a voter listens."""

    listener: str
    host: str
    port: int


class Voter(NamedTuple):
    """One voter."""

    id: int
    directory_id: bytes = ZERO_UUID
    addresses: tuple[Address, ...] = ()
    kraft_versions: tuple[int, int] = SUPPORTED[KRAFT_VERSION]


class Voters(NamedTuple):
    """A set of voters by node id."""

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

    def leader_change(self, leader_id: int) -> LeaderChangeMessage:
        """The control record that opens the epoch of a leader that all voters voted for."""
        voters = [LeaderChangeMessage.Voter(voter_id=voter_id) for voter_id in self.by_id]
        return LeaderChangeMessage(leader_id=leader_id, voters=voters, granting_voters=list(voters))
