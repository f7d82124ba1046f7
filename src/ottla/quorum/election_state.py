"""The file `quorum-state` on a disk; what it says, and why, is in `raft/election_state.py`.

Only a voter among others can break a promise by losing the file. The only voter of a quorum gave its vote to nobody
else, and every epoch it wrote in stands in its log, so it may go on without.
"""

from ottla.metadata.error import MetadataError
from ottla.raft.election_state import FILE_NAME, ElectionState, UnreadableState
from ottla.raft.voters import Voters
from ottla.world.disk import Disk


class TornState(MetadataError):
    """The file is there, but what it said is lost."""


def write_election_state(
    state: ElectionState, disk: Disk, directory: str, kraft_version: int, voters: Voters
) -> None:
    """Replace the file; a static quorum uses its older form, which also names the voters."""
    disk.write_atomic(f"{directory}/{FILE_NAME}", state.encode(kraft_version, voters.by_id))


def read_election_state(disk: Disk, directory: str) -> ElectionState:
    """The state in the file; that of a voter that has seen nothing when there is no file; TornState if it is torn."""
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return ElectionState()
    try:
        return ElectionState.decode(disk.read_bytes(path))
    except UnreadableState as error:
        raise (TornState if error.is_torn else MetadataError)(f"{path} {error}") from error
