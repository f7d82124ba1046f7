"""The election state: the highest epoch a replica has seen, whom it follows in it, and whom it voted for.

Q1  It is on disk before anything is said or written in the epoch it names, so no epoch ever has two leaders.
Q2  Within an epoch a vote is never taken back, and a leader never replaced.

On disk it is the file `quorum-state`, one line of JSON in Kafka's words. A static quorum uses the older form, which
names the voters and knows no directories.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from ottla.raft.voters import RECONFIGURATION_SINCE, ReplicaKey
from ottla.wire.errors import ProtocolError
from ottla.wire.uuid import ZERO_UUID, uuid_bytes, uuid_text

FILE_NAME = "quorum-state"
NOBODY = -1


class UnreadableState(ValueError):
    """The bytes are no election state; `is_torn` when they never were one, and not merely one from the future."""

    def __init__(self, text: str, *, is_torn: bool) -> None:
        super().__init__(text)
        self.is_torn = is_torn


class ElectionState(NamedTuple):
    """What a voter must not forget."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO_UUID

    def has_voted_for(self, key: ReplicaKey) -> bool:
        """True when the vote went to this copy; the older form of the file knows only its node."""
        return self.voted_id == key.id and self.voted_directory_id in (ZERO_UUID, key.directory_id)

    def encode(self, kraft_version: int, voter_ids: Iterable[int]) -> bytes:
        """The content of the file."""
        if kraft_version < RECONFIGURATION_SINCE:
            data: dict[str, object] = {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.epoch,
                "votedId": self.voted_id,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
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
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, content: bytes) -> "ElectionState":
        """What the content of a file says; UnreadableState when it says nothing."""
        try:
            data = json.loads(content)
            version = data["data_version"]
            if version not in {0, 1}:
                raise UnreadableState(f"has data_version {version}; known are 0 and 1", is_torn=False)
            voted = uuid_bytes(data["votedDirectoryId"]) if version == 1 else ZERO_UUID
            return cls(int(data["leaderEpoch"]), int(data["leaderId"]), int(data["votedId"]), voted)
        except UnreadableState:
            raise
        except (ValueError, KeyError, TypeError, ProtocolError) as error:
            raise UnreadableState(f"is no election state: {error!r}", is_torn=True) from error
