"""The file `quorum-state`: the highest epoch a voter has seen, whom it follows in it, and whom it voted for.

Q1  It is on disk before anything is said or written in the epoch it names, so no epoch ever has two leaders.
Q2  Only a voter among others can break a promise by losing the file. The only voter of a quorum gave its vote to nobody
    else, and every epoch it wrote in stands in its log, so it may go on without.
"""

import json
from typing import NamedTuple

from ottla.metadata.error import MetadataError
from ottla.quorum.voters import Voters
from ottla.wire.errors import ProtocolError
from ottla.wire.uuid import ZERO_UUID, uuid_bytes, uuid_text
from ottla.world.disk import Disk

FILE_NAME = "quorum-state"
NOBODY = -1


class TornState(MetadataError):
    """The file is there, but what it said is lost."""


class ElectionState(NamedTuple):
    """What a voter must not forget."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO_UUID

    def write(self, disk: Disk, directory: str, kraft_version: int, voters: Voters) -> None:
        """Replace the file; a static quorum uses its older form, which also names the voters."""
        if kraft_version == 0:
            data: dict[str, object] = {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.epoch,
                "votedId": self.voted_id,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter_id} for voter_id in voters.by_id],
                "data_version": 0,
            }
        else:
            data = {
                "leaderId": self.leader_id,
                "leaderEpoch": self.epoch,
                "votedId": self.voted_id,
                "votedDirectoryId": uuid_text(self.voted_directory_id),
                "data_version": 1,
            }
        disk.write_atomic(f"{directory}/{FILE_NAME}", json.dumps(data, separators=(",", ":")).encode())


def read_election_state(disk: Disk, directory: str) -> ElectionState:
    """The state in the file; that of a voter that has seen nothing when there is no file; TornState if it is torn."""
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return ElectionState()
    try:
        data = json.loads(disk.read_bytes(path))
        version = data["data_version"]
        if version not in {0, 1}:
            raise MetadataError(f"{path} has data_version {version}; known are 0 and 1")
        voted = uuid_bytes(data["votedDirectoryId"]) if version == 1 else ZERO_UUID
        return ElectionState(int(data["leaderEpoch"]), int(data["leaderId"]), int(data["votedId"]), voted)
    except (ValueError, KeyError, TypeError, ProtocolError) as error:
        raise TornState(f"{path} is no election state: {error!r}") from error
