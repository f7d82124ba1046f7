"""What a member of a group of the newer protocols may say of itself, and what a group may be told of its topology.

Kafka has no limit but the size of a request. Each name is looked up, counted and kept, for each member, so a frame of a
megabyte was work for a third of a second and took 24 MB.
"""

from collections.abc import Collection, Iterable

from ottla.groups.classic.member import text_bytes
from ottla.groups.shelf import Shelf
from ottla.wire.errors import BrokerError, ErrorCode

NAMES_MAX = 10_000  # of a member, or in a topology
SAID_BYTES_MAX = 1 << 20  # of what a member says of itself, so that it fits into a record, and that into a batch
# What a name takes beside its characters: as an object, and in the sets and tables of the member and its group.
_NAME_BYTES = 200


def check_names(what: str, names: Collection[str]) -> None:
    """Raise INVALID_REQUEST if there are more names than anybody needs."""
    if len(names) > NAMES_MAX:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"{what}: {len(names)} names are more than {NAMES_MAX}."
        )
    if sum(map(len, names)) > SAID_BYTES_MAX:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"{what}: the names are longer than {SAID_BYTES_MAX} characters."
        )


def names_bytes(names: Iterable[str]) -> int:
    """Return how many bytes of memory names take."""
    return sum([_NAME_BYTES + text_bytes(name) for name in names])


def admit(shelf: Shelf, more_bytes: int, now: int) -> None:
    """Raise COORDINATOR_NOT_AVAILABLE, upon which it is tried again, if there is no room for so much more."""
    if more_bytes > 0 and not shelf.tally.members.admits(more_bytes, now):
        raise BrokerError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, "The members of all groups take all the memory there is for them."
        )
