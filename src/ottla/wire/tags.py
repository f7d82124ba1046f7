"""Tagged fields off the common path: keep those we do not know, write those that are set.

T1  Tags strictly ascend within a struct.
T2  Unknown fields are kept as they came, at most 64 of them and 64 KiB in one message.
"""

from collections.abc import Mapping

from ottla.wire.errors import ProtocolError
from ottla.wire.varint import Buffer, read_varint, varint

Budget = tuple[int, int]
BUDGET: Budget = (64, 65536)


def keep_unknown(
    kept: dict[int, bytes] | None, budget: Budget, tag: int, buf: Buffer, pos: int, stop: int
) -> tuple[dict[int, bytes], Budget]:
    """Add one unknown field to those kept so far, charged to the message's budget."""
    fields_left, bytes_left = budget[0] - 1, budget[1] - (stop - pos)
    if fields_left < 0 or bytes_left < 0:
        raise ProtocolError(f"more than {BUDGET[0]} unknown tagged fields or {BUDGET[1]} bytes of them")
    if kept is None:
        kept = {}
    kept[tag] = bytes(buf[pos:stop])
    return kept, (fields_left, bytes_left)


def read_tag(buf: Buffer, pos: int, end: int, last: int) -> tuple[int, int, int]:
    """A tag, the position of its value and the position after it."""
    tag, pos = read_varint(buf, pos)
    size, pos = read_varint(buf, pos)
    if tag <= last:
        raise ProtocolError(f"tag {tag} after tag {last}")
    if pos + size > end:
        raise ProtocolError(f"tag {tag} of {size} bytes with {max(end - pos, 0)} left")
    return tag, pos, pos + size


def read_unknown(
    buf: Buffer, pos: int, end: int, budget: Budget
) -> tuple[dict[int, bytes] | None, int, Budget]:
    """The tagged fields of a struct that declares none, from their count on."""
    count, pos = read_varint(buf, pos)
    kept: dict[int, bytes] | None = None
    last = -1
    for _ in range(count):
        last, pos, stop = read_tag(buf, pos, end, last)
        kept, budget = keep_unknown(kept, budget, last, buf, pos, stop)
        pos = stop
    return kept, pos, budget


def write_tags(out: bytearray, tags: Mapping[int, bytes | bytearray]) -> None:
    """A struct's tagged fields, in the order of their tags."""
    out += varint(len(tags))
    for tag in sorted(tags):
        value = tags[tag]
        out += varint(tag)
        out += varint(len(value))
        out += value
