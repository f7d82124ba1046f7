"""A log behaves as a list does, whatever is appended, cut, rolled and restarted in between."""

import shutil
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.wire.batch import scan
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError
from ottla.world.worker import InlineWorker
from tests.unit.log.workbench import NOW, Workbench, put, put_from, read_all


class LogAgainstList(RuleBasedStateMachine):
    """`batches` is what the log must hold: first offset and values of each batch, oldest first."""

    def __init__(self):
        super().__init__()
        self.path = tempfile.mkdtemp(prefix="log-model-")
        self.bench = None

    @initialize(
        segment_bytes=st.sampled_from([500, 1000, 5000]), index_interval_bytes=st.sampled_from([0, 100, 600])
    )
    def start(self, segment_bytes, index_interval_bytes):
        self.bench = Workbench(
            self.path,
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            file_delete_delay_ms=0,
        )
        self.log = self.bench.log
        self.batches = []
        self.start_offset = self.end_offset = self.synced = 0
        self.serial = 0
        self.timestamp = NOW
        self.sequences = {}
        self.generation = 0

    def teardown(self):
        if self.bench is not None:
            self.bench.stop(clean=False)
        shutil.rmtree(self.path)

    def _values(self, count, size):
        self.serial += count
        return [b"%d" % n + b"." * size for n in range(self.serial - count, self.serial)]

    def _appended(self, values, appended):
        assert appended.base_offset == self.end_offset
        assert not appended.duplicate
        self.batches.append((self.end_offset, values))
        self.end_offset += len(values)
        assert appended.end_offset == self.end_offset

    @rule(
        count=st.integers(1, 5),
        size=st.integers(0, 60),
        epoch=st.integers(0, 3),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP]),
        step_ms=st.integers(-20, 40),
    )
    def append(self, count, size, epoch, codec, step_ms):
        values = self._values(count, size)
        self.timestamp += step_ms
        self._appended(values, put(self.log, *values, epoch=epoch, timestamp=self.timestamp, codec=codec))

    @rule(producer_id=st.integers(1, 3), count=st.integers(1, 4))
    def append_idempotently(self, producer_id, count):
        producer_id += 10 * self.generation
        sequence = self.sequences.get(producer_id, 0)
        values = self._values(count, 5)
        appended = put_from(self.log, producer_id, sequence, *values)
        self._appended(values, appended)
        again = put_from(self.log, producer_id, sequence, *values)
        assert (again.base_offset, again.end_offset, again.duplicate) == (*appended[:2], True)
        self.sequences[producer_id] = sequence + count

    @rule()
    def roll(self):
        self.log.roll()

    @rule()
    def sync(self):
        self.log.sync()
        self.synced = self.end_offset

    @rule()
    def settle(self):
        self.log.settle()

    @rule()
    def checkpoint(self):
        self.bench.directory.checkpoint()

    @precondition(lambda self: self.end_offset)
    @rule(data=st.data())
    def truncate(self, data):
        # A leader's epochs end where batches end, so that is where followers cut.
        ends = [first + len(values) for first, values in self.batches]
        offset = data.draw(st.sampled_from([0, *ends, self.end_offset]))
        if offset == self.end_offset:
            assert not self.log.truncate_to(offset)
            return
        assert self.log.truncate_to(offset)
        self.batches = [(first, values) for first, values in self.batches if first + len(values) <= offset]
        if offset < self._first_base():
            self.batches = []
        self.start_offset = min(self.start_offset, offset)
        self.end_offset = offset
        self.synced = min(self.synced, offset)
        self._new_producers()

    def _first_base(self):
        return self.log.first_base_offset

    def _new_producers(self):
        """What a cut leaves of a producer's state depends on where snapshots were; go on under other ids."""
        self.sequences = {}
        self.generation += 1

    @precondition(lambda self: self.end_offset > self.start_offset)
    @rule(data=st.data())
    def raise_start(self, data):
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        self.log.raise_start_offset(offset)
        self.start_offset = offset

    @rule()
    def retain(self):
        self.log.delete_old_segments(NOW, self.end_offset)
        self.bench.directory.remove_doomed(NOW, InlineWorker())
        self.batches = [
            (first, values)
            for first, values in self.batches
            if first + len(values) > self.log.first_base_offset
        ]

    @rule(dormant=st.booleans())
    def restart_cleanly(self, dormant):
        self.log = self.bench.restart(clean=True)
        assert self.log.is_dormant
        if not dormant:
            assert self.log.end_offset == self.end_offset
            assert not self.log.is_dormant
        assert self.bench.warnings == []
        self.synced = self.end_offset

    @rule(cut=st.integers(0, 400))
    def crash(self, cut):
        """Lose up to `cut` bytes of what was not synced, wherever that cuts a batch."""
        self.bench.directory.checkpoint()
        point = self.log.recovery_point
        active = self.log.segments[-1]
        kept = active.file.size
        lost = 0
        if point < active.base_offset or point == 0:
            lost = min(cut, active.file.size)
        elif (found := active.locate(point)) is not None:
            lost = min(cut, active.file.size - found[0])
        self.bench.stop(clean=False)
        with open(active.file.path, "r+b") as file:
            file.truncate(kept - lost)
        self.log = self.bench.start()
        self.bench.warnings.clear()
        survivors = [
            (first, values) for first, values in self.batches if first + len(values) <= self.log.end_offset
        ]
        if lost == 0:
            assert self.log.end_offset == self._last_stored_end()
        assert self.log.end_offset >= min(self.synced, self._last_stored_end())
        self.batches = survivors
        self.end_offset = self.log.end_offset
        self.start_offset = self.log.start_offset
        self.synced = min(self.synced, self.end_offset)
        self._new_producers()

    def _last_stored_end(self):
        """Where the log ends for one who knows the files alone: a cut within a batch leaves a gap they cannot show."""
        if self.batches:
            first, values = self.batches[-1]
            return max(first + len(values), self.log.segments[-1].base_offset)
        return self.log.segments[-1].base_offset

    @invariant()
    def holds_what_the_list_holds(self):
        if self.bench is None or self.log.is_dormant:
            return
        log = self.log
        assert log.end_offset == self.end_offset
        assert log.start_offset == max(self.start_offset, log.start_offset)
        self.start_offset = log.start_offset
        expected = [
            (first + n, value)
            for first, values in self.batches
            for n, value in enumerate(values)
            if first + n >= log.start_offset
        ]
        assert read_all(log) == expected
        assert read_all(log, 200) == expected

    @precondition(lambda self: self.bench is not None and self.batches)
    @rule(data=st.data(), size_bytes_max=st.integers(0, 900), at_least_one=st.booleans())
    def read(self, data, size_bytes_max, at_least_one):
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        end_offset = data.draw(st.integers(offset, self.end_offset))
        found = self.log.read(offset, size_bytes_max, end_offset, at_least_one=at_least_one)
        held = [b for b in self.batches if b[0] + len(b[1]) > offset and b[0] + len(b[1]) <= end_offset]
        headers = [header for _, header in scan(found)]
        assert sum(header.size for header in headers) == len(found)
        assert [header.base_offset for header in headers] == [first for first, _ in held][: len(headers)]
        if len(found) > size_bytes_max:
            assert at_least_one
            assert len(headers) == 1
        if held and at_least_one:
            assert headers

    @precondition(lambda self: self.bench is not None)
    @rule(beyond=st.integers(1, 5))
    def read_out_of_range(self, beyond):
        for offset in (self.end_offset + beyond, self.start_offset - beyond):
            try:
                self.log.read(offset, 100, self.end_offset)
            except BrokerError as error:
                assert error.code.name == "OFFSET_OUT_OF_RANGE"
            else:
                raise AssertionError(f"offset {offset} was read")


LogAgainstList.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestLogAgainstList = LogAgainstList.TestCase
