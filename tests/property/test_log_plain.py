"""The append in C and the one in Python: whatever comes, both answer alike and leave the same behind."""

import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log import plain
from ottla.wire.batch import restamp_crc
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError
from tests.unit.log.topic_settings import CASES
from tests.unit.log.workbench import NOW, Workbench, batch

pytestmark = pytest.mark.skipif(plain.append is None, reason="the compiled append was not built")

FOREVER = (1 << 63) - 1
# Besides those of the table, some at once.
CONFIGS = (
    *(case.log for case in CASES.values()),
    {"index_interval_bytes": 0, "max_message_bytes": 700},
    {"segment_ms": 1000, "message_timestamp_before_max_ms": 500, "message_timestamp_after_max_ms": 500},
    {"message_timestamp_after_max_ms": FOREVER},
    {"compression_type": "uncompressed", "max_message_bytes": 700},
)

step = st.fixed_dictionaries(
    {
        "values": st.lists(st.binary(max_size=300), min_size=1, max_size=4),
        "timestamp": st.sampled_from([0, 0, 0, 0, -1000, -400, 400, 1000, -NOW - 1]),
        "codec": st.sampled_from([Codec.NONE, Codec.NONE, Codec.NONE, *Codec]),
        "keyed": st.booleans(),
        "producer": st.sampled_from([None, None, 1, 2]),
        "epoch": st.sampled_from([0, 0, 0, 0, 1]),
        "back": st.sampled_from([0, 0, 0, 0, 1, 3, -2]),
        "transactional": st.sampled_from([False, False, False, False, True]),
        "leader_epoch": st.sampled_from([0, 0, 0, 1]),
        # Which byte of the batch is spoilt, and how.
        "spoilt": st.one_of(
            st.none(), st.none(), st.none(), st.tuples(st.integers(0, 60), st.integers(1, 255))
        ),
        # Likewise, behind a header that has the right checksum for it: the records are for the append to look through.
        "forged": st.one_of(
            st.none(), st.none(), st.none(), st.tuples(st.integers(21, 90), st.integers(1, 255))
        ),
        "cut": st.sampled_from([0, 0, 0, 0, 0, 1, 30, 90]),
        "rest": st.sampled_from([False, False, False, True]),
    }
)


def batches(steps):
    """Build what the steps say, with sequence numbers that mostly go on."""
    following = {}
    latest_epoch = 0
    for each in steps:
        how = {"codec": each["codec"]}
        producer = each["producer"]
        if producer is not None:
            sequence = max(0, following.get(producer, 0) - each["back"])
            following[producer] = sequence + len(each["values"])
            how |= {"producer_id": producer, "producer_epoch": each["epoch"], "base_sequence": sequence}
            how["transactional"] = each["transactional"]
        how["keys"] = [b"key"] * len(each["values"]) if each["keyed"] else None
        data = batch(*each["values"], timestamp=NOW + each["timestamp"], **how)
        if each["spoilt"] is not None:
            at, change = each["spoilt"]
            data[at] ^= change
        if each["forged"] is not None and each["forged"][0] < len(data):
            at, change = each["forged"]
            data[at] ^= change
            restamp_crc(data, 0, len(data))
        latest_epoch = max(latest_epoch, each["leader_epoch"])
        yield data[: len(data) - each["cut"]], latest_epoch, each["rest"]


def played(path, config, steps, swift):
    """Append all, and return what was answered and what is there afterwards."""
    bench = Workbench(path, **config)
    log = bench.log
    told = []
    with mock.patch("ottla.log.log._append_plain", plain.append if swift else None):
        for number, (data, epoch, rest) in enumerate(batches(steps)):
            if rest:
                log._active.file.rest()
            before = bytes(data)
            try:
                told.append(tuple(log.append(memoryview(data), epoch, NOW + number)))
            except BrokerError as error:
                told.append((error.code, error.message))
                assert data == before, "what is refused is as it came"
    for segment in log.segments:
        names = "base_offset max_timestamp max_timestamp_offset first_timestamp bytes_since_index created_ms"
        told.append([getattr(segment, name) for name in names.split()])
        told.append((segment.file.size, segment.file.read(0, 1 << 20)))
    tail = log._tail
    told.append((tail.ends, tail.positions, tail.newest, tail.newest_offset, tail.start_offset))
    told.append((log.start_offset, log.end_offset, log._roll_after, log._epochs.entries))
    told.append(
        [
            (entry.producer_id, entry.epoch, entry.next_sequence, entry.last_timestamp, list(entry.batches))
            for entry in log.producers()
        ]
    )
    bench.stop()
    told.append({file.name: file.read_bytes() for file in sorted(Path(bench.log_path).iterdir())})
    return told


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@settings(max_examples=12, deadline=None)
@given(st.lists(step, min_size=1, max_size=25))
def test_both_leave_the_same_behind(config, steps):
    with tempfile.TemporaryDirectory() as path:
        mine, theirs = (
            played(Path(path) / name, config, steps, swift=swift)
            for name, swift in (("swift", True), ("python", False))
        )
    assert mine == theirs


def test_a_plain_batch_takes_the_compiled_way(tmp_path):
    log = Workbench(tmp_path).log
    log.append(batch(b"the first makes room"), 0, NOW)
    assert plain.append(log, batch(b"x"), 0, NOW) == 1
    assert plain.append(log, batch(b"x", producer_id=3, producer_epoch=0, base_sequence=0), 0, NOW) is None
    log.append(batch(b"x", producer_id=3, producer_epoch=0, base_sequence=0), 0, NOW)
    assert plain.append(log, batch(b"x", producer_id=3, producer_epoch=0, base_sequence=1), 0, NOW) == 3
    spoilt = batch(b"x")
    spoilt[-1] ^= 1
    assert plain.append(log, spoilt, 0, NOW) is None
    assert log.end_offset == 4


def test_a_write_that_falls_short_is_taken_back(tmp_path):
    """A file that may not grow any more refuses in the midst of a batch; nothing of it stays."""
    import resource
    import signal

    log = Workbench(tmp_path).log
    log.append(batch(b"x"), 0, NOW)
    size = log._active.file.size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        data = batch(b"y")
        before = bytes(data)
        assert plain.append(log, data, 0, NOW) is None
        assert data == before
        assert Path(log._active.file.path).stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert log.append(data, 0, NOW).base_offset == 1
