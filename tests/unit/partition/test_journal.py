"""The log of a coordinator read back: in order, whole, and in short steps."""

from itertools import pairwise
from types import SimpleNamespace

import pytest

from ottla.partition.journal import Replay
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.batch import Batch, assemble, build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record
from ottla.wire.records.offset import OffsetCommitKey, OffsetCommitValue
from tests.unit.log.workbench import NOW, Workbench

KINDS = {1: (OffsetCommitKey, OffsetCommitValue)}


class Machine:
    """Notes what it is given."""

    def __init__(self):
        self.taken = []

    def apply(self, offset, record):
        self.taken.append((offset, record.key.partition, record.value and record.value.offset))

    def apply_pending(self, producer_id, offset, record):
        self.apply(offset, record)


def stored(offset, number):
    value = None if number % 7 == 0 else OffsetCommitValue(offset=number, commit_timestamp=NOW)
    key, content = KeyedRecord(OffsetCommitKey(group="g", topic="t", partition=number), value, 3).encode()
    return Record(offset, NOW, key, content, ())


def wanted(numbers):
    return [(number, number, None if number % 7 == 0 else number) for number in numbers]


@pytest.fixture
def log(tmp_path):
    return Workbench(tmp_path, max_message_bytes=1 << 26).log


def replayed(log):
    """Read all; return what was read, and how many records each step took."""
    machine = Machine()
    replay = Replay(SimpleNamespace(log=log), machine, KINDS)
    steps = [0]
    while replay.step():
        steps.append(len(machine.taken))
    assert replay.offset == log.end_offset
    assert replay.records == len(machine.taken)
    return machine.taken, [after - before for before, after in pairwise(steps)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_long_batch_takes_several_steps(log, codec):
    count = 10_000
    for first, last in ((0, 5), (5, count - 5), (count - 5, count)):
        records = [stored(number - first, number) for number in range(first, last)]
        log.append(build_batch(records, codec=codec), 0, NOW, from_client=False)
    taken, steps = replayed(log)
    assert taken == wanted(range(count))
    assert max(steps) <= 4096


@pytest.mark.parametrize("body", [b"\xff" * 40, b"\0"])
@pytest.mark.parametrize("count", [1, 100_000])
def test_what_cannot_be_read_says_so(log, body, count):
    header = Batch.parse(build_batch([stored(0, 1)]))._replace(
        record_count=count, last_offset_delta=count - 1
    )
    log.append(assemble(header, body), 0, NOW, from_client=False)
    with pytest.raises(ProtocolError):
        replayed(log)


def test_a_bomb_says_so(log):
    bomb = build_batch([Record(0, NOW, b"k", bytes(65 << 20), ())], codec=Codec.ZSTD)
    log.append(bomb, 0, NOW, from_client=False)
    with pytest.raises(ProtocolError, match="decompress to more than"):
        replayed(log)
