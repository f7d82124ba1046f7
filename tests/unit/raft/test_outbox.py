"""What a step appends is read by whoever waits for it."""

from ottla.raft.outbox import Outbox
from ottla.wire.batch import build_batch
from ottla.wire.record import Record


def batch(offset: int) -> bytearray:
    return build_batch([Record(offset, 0, None, b"value")], base_offset=offset, leader_epoch=1)


def test_those_who_wait_for_the_same_are_sent_the_same_bytes() -> None:
    outbox = Outbox()
    first, second, third = (batch(offset) for offset in range(3))
    outbox.append(first + second)
    assert outbox.read(0, 1_000) == first + second
    assert outbox.read(0, 1_000) is outbox.read(0, 1_000)
    assert outbox.read(1, 1_000) == second
    assert outbox.read(0, len(first)) == first
    outbox.append(third)
    assert outbox.read(0, 1_000) == first + second + third
    assert outbox.take().append == [first + second, third]
    assert outbox.read(0, 1_000) == b""
