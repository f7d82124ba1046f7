"""Compaction against a list of all that was ever written, with crashes at every step of the exchange.

Whatever is written, rolled, cleaned and reopened, in whatever order: a reader that reads committed records only ends up
with the same last value of every key; nothing appears that was not written; a tombstone stays long enough to be seen;
producers go on where they were; and a crash within the exchange of segments changes none of that.
"""

import contextlib
import itertools
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.cleaner import Cleaner, CleanerConfig
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.latest_offsets import ENTRY_BYTES
from ottla.wire.batch import build_batch, crc_ok, read_records, scan
from ottla.wire.compression import Codec
from ottla.wire.control import ControlType, control_type, end_transaction_batch
from ottla.wire.record import Record
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy
from ottla.world.worker import InlineWorker

RETENTION = 1_000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    index_interval_bytes=100,
    segment_bytes=1_500,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=RETENTION,
    message_timestamp_after_max_ms=1 << 60,
)
# Some thousand fsyncs take a minute on a real disk, and prove nothing here.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
CHANGES = ("rename", "remove", "remove_tree", "write_atomic", "sync_dir")

keys = st.sampled_from([b"a", b"b", b"c", b"d" * 20, b"e" * 40])
values = st.none() | st.binary(max_size=30) | st.just(b"v" * 200)
pairs = st.lists(st.tuples(keys, values), min_size=1, max_size=6)
producers = st.integers(1, 3)
writes = st.one_of(
    st.tuples(st.just("put"), pairs, st.sampled_from(Codec)),
    st.tuples(st.just("produce"), pairs, producers),
    st.tuples(st.just("transact"), pairs, producers),
    st.tuples(st.just("end"), producers, st.booleans()),
)
cares = st.one_of(
    st.tuples(st.just("clean"), st.sampled_from([1, 3, 1_000])),
    st.tuples(st.just("wait"), st.sampled_from([RETENTION // 2, RETENTION])),
    st.tuples(st.just("reopen"), st.booleans()),
)
rounds = st.tuples(st.lists(writes, min_size=1, max_size=6), st.lists(cares, min_size=1, max_size=4)).map(
    lambda halves: [*halves[0], ("roll",), *halves[1]]
)
stories = st.lists(rounds, min_size=2, max_size=8).map(
    lambda parts: [step for part in parts for step in part]
)


class WatchedDisk(RealDisk):
    """A disk that tells before each change of a name."""

    def __init__(self):
        super().__init__()
        self.watch = None

    def __getattribute__(self, name):
        if name in CHANGES and (watch := object.__getattribute__(self, "watch")) is not None:
            watch()
        return object.__getattribute__(self, name)


class History:
    """A log and all that was ever written to it."""

    def __init__(self, path):
        self.path = path
        self.disk = WatchedDisk()
        self.now_ms = 1_000_000
        self.written = []  # every record, with its producer's transaction or None
        self.decided = {}  # transaction → (commit, offset of the marker)
        self.open = {}  # producer → transaction
        self.sequences = {}
        self.cleaned_at = {}  # offset → when a cleaning first met the record
        self.transactions = itertools.count()
        self.directory, self.log = open_log(self.path, self.disk)
        self.cleaner = Cleaner(self.disk)

    def reopen(self, *, settled):
        self.log.close(clean=False)
        self.directory, self.log = open_log(self.path, self.disk)
        self.cleaner = Cleaner(self.disk)
        if settled:
            self.log.settle()
            self.log.sync()
            self.directory.checkpoint()

    def append(self, contents, transaction=None, **how):
        records = [
            Record(i, self.now_ms + i, key, value, (("n", b"%d" % i),))
            for i, (key, value) in enumerate(contents)
        ]
        done = self.log.append(build_batch(records, **how), 0, self.now_ms)
        assert not done.duplicate
        for record in records:
            self.written.append((record._replace(offset=done.base_offset + record.offset), transaction))

    def produce(self, contents, producer_id, *, transactional):
        if producer_id in self.open and not transactional:
            return
        transaction = None
        if transactional:
            transaction = self.open.setdefault(producer_id, next(self.transactions))
        sequence = self.sequences.get(producer_id, 0)
        how = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        self.append(contents, transaction, transactional=transactional, **how)
        self.sequences[producer_id] = sequence + len(contents)

    def end(self, producer_id, commit):
        transaction = self.open.pop(producer_id, None)
        marker = end_transaction_batch(
            commit=commit,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=self.now_ms,
        )
        done = self.log.append(marker, 0, self.now_ms, from_client=False)
        if transaction is not None:
            self.decided[transaction] = commit, done.base_offset

    def clean(self, capacity):
        self.cleaner.config = CleanerConfig(
            dedupe_buffer_size=capacity * ENTRY_BYTES, dedupe_buffer_load_factor=1.0, io_buffer_size=800
        )
        cleaning = self.cleaner.plan(
            [(self.log, self.log.last_stable_offset(self.log.end_offset))], self.now_ms
        )
        if cleaning is None:
            return
        while True:
            done = cleaning.clean()
            snapshots = []
            if done.replacement is not None:
                self.disk.watch = lambda keep=snapshots: keep.append(self.copy())
            before = list(read_batches(self.log))
            more = self.cleaner.install(cleaning, done)
            self.disk.watch = None
            for copy in snapshots:
                log = open_log(copy, RealDisk())[1]
                self.check(log, at_crash=True)
                assert list(read_batches(log)) in (before, list(read_batches(self.log)))
                log.close(clean=False)
                shutil.rmtree(copy)
            if done.replacement is not None:
                self.note_rewritten(done.replacement)
            self.directory.remove_doomed(self.now_ms, InlineWorker())
            self.directory.remove_doomed(self.now_ms + CONFIG.file_delete_delay_ms, InlineWorker())
            if not more:
                break

    def note_rewritten(self, replacement):
        """Remember which records have now been looked at by the cleaner, whether or not its map reached them."""
        segments = self.log.segments
        start_offset = replacement.new.base_offset
        end_offset = segments[segments.index(replacement.new) + 1].base_offset
        for record, _ in self.written:
            if start_offset <= record.offset < end_offset:
                self.cleaned_at.setdefault(record.offset, self.now_ms)

    def copy(self):
        target = tempfile.mkdtemp(dir=self.path.parent)
        shutil.copytree(self.path, target, dirs_exist_ok=True)
        return target

    def check(self, log, *, at_crash=False):
        """Compare what a log holds with what was written."""
        assert log.end_offset == self.log.end_offset
        originals = {record.offset: record for record, _ in self.written}
        batches = list(read_batches(log))
        present = [record for header, found in batches if not header.is_control for record in found]
        offsets = [record.offset for record in present]
        assert offsets == sorted(set(offsets))
        for record in present:
            assert record == originals[record.offset]
        stable = log.last_stable_offset(log.end_offset)
        visible = [record for record in read_committed(log, batches) if record.offset < stable]
        committed = [
            record
            for record, transaction in self.written
            if record.offset < stable and (transaction is None or self.decided.get(transaction, (False,))[0])
        ]
        assert {record.offset for record in visible} <= {record.offset for record in committed}
        assert last_values(visible) == last_values(committed)
        latest = {record.key: record for record in committed}
        held = set(offsets)
        for record in latest.values():
            seen_at = self.cleaned_at.get(record.offset)
            if record.value is None and (seen_at is None or self.now_ms < seen_at + RETENTION):
                assert record.offset in held, "a tombstone went too early"
        clean_offset = self.cleaner.clean_offset(self.log) or 0
        if not at_crash and not self.cleaner.is_busy(self.log):
            dirty = {
                record.offset
                for record, transaction in self.written
                if record.offset >= clean_offset and self.decided.get(transaction, (True,))[0]
            }
            assert dirty <= held, "a record above the clean part went"
        for producer_id, sequence in self.sequences.items():
            (entry,) = [entry for entry in log.producers() if entry.producer_id == producer_id]
            assert entry.next_sequence == sequence


def open_log(path, disk):
    def warn(text):
        assert "was compacted, finishing its replacement" in text, text

    directory = LogDirectory(str(path), disk, RealEntropy(), warn)
    directory._recovery_points = directory._read_offsets("recovery-point-offset-checkpoint")
    return directory, directory.open_log("t", 0, bytes(16), CONFIG)


def read_batches(log):
    offset = log.start_offset
    while data := log.read(offset, 1 << 20, log.end_offset):
        for pos, header in scan(data):
            assert crc_ok(data, pos, header.size)
            yield header, read_records(data, pos)
            offset = header.end_offset


def read_committed(log, batches):
    """Yield what a client that reads committed records shows its application."""
    pending = sorted(log.aborted_transactions(0, log.end_offset), key=lambda entry: entry[1])
    aborted = set()
    for header, records in batches:
        while pending and pending[0][1] <= header.last_offset:
            aborted.add(pending.pop(0)[0])
        if header.is_control:
            if records and control_type(records[0].key) is ControlType.ABORT:
                aborted.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in aborted:
            yield from records


def last_values(records):
    values = {}
    for record in records:
        values.pop(record.key, None)
        if record.value is not None:
            values[record.key] = record.value
    return values


@settings(max_examples=60, deadline=None)
@given(story=stories)
def test_compaction_keeps_what_readers_need(story):
    with tempfile.TemporaryDirectory(dir=MEMORY) as path, contextlib.ExitStack() as stack:
        history = History(Path(path) / "data")
        stack.callback(lambda: history.log.close(clean=False))
        for name, *details in story:
            history.now_ms += 1
            if name == "put":
                history.append(details[0], codec=details[1])
            elif name == "produce":
                history.produce(*details, transactional=False)
            elif name == "transact":
                history.produce(*details, transactional=True)
            elif name == "end":
                history.end(*details)
            elif name == "roll":
                history.log.roll()
            elif name == "wait":
                history.now_ms += details[0]
            elif name == "reopen":
                history.reopen(settled=details[0])
                history.check(history.log)
            else:
                history.clean(*details)
                history.check(history.log)
