"""Any partition with any transactions in it, read from anywhere, comes out the same as objects and as Arrow."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.consumer import record_objects as objects
from ottla.client.consumer.arrow_records import SCHEMA, arrow_records_of
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.record import Record
from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.control import end_transaction_batch
from ottla.wire.record import Record as Plain

payloads = st.sampled_from([None, b"", b"k", b"value" * 20])
headers = st.sampled_from([(), (), (("a", b"1"),), (("a", None), ("é", b""), ("", b"x"))])
fields = st.tuples(st.integers(0, 2_000), payloads, payloads, headers)
codecs = st.sampled_from(Codec)


@dataclass
class Log:
    """A partition as its leader holds it: bytes, and what an application may see of them."""

    topic: str
    partition: int
    data: bytearray = field(default_factory=bytearray)
    records: list[Record] = field(default_factory=list)
    producers: list[int] = field(default_factory=list)  # of each record, or -1
    end_offset: int = 0
    open: dict[int, int] = field(default_factory=dict)  # producer id to the first offset of its transaction
    aborted: list[tuple[int, int]] = field(default_factory=list)

    def append(self, draw: st.DrawFn, producer_id: int) -> None:
        gap, epoch = draw(st.sampled_from([0, 0, 5])), draw(st.sampled_from([0, 0, 7]))
        append_time = draw(st.sampled_from([None, None, 77]))
        offset = self.end_offset + gap
        plain = []
        for timestamp, key, value, extra in draw(st.lists(fields, min_size=1, max_size=4)):
            plain.append(Plain(offset, timestamp, key, value, extra))
            offset += draw(st.sampled_from([1, 1, 70]))
        times = draw(st.sampled_from([1, 1, 30]))  # many of one length
        plain += [plain[-1]._replace(offset=offset + n) for n in range(times)]
        self.data += build_batch(
            plain,
            base_offset=self.end_offset + gap,
            codec=draw(codecs),
            leader_epoch=epoch,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
            log_append_time_ms=append_time,
        )
        kind, time = (0, None) if append_time is None else (1, append_time)
        self.records += [
            Record(self.topic, self.partition, offset, time or timestamp, key, value, extra, kind, epoch, 0)
            for offset, timestamp, key, value, extra in plain
        ]
        self.producers += [producer_id] * len(plain)
        if producer_id >= 0:
            self.open.setdefault(producer_id, self.end_offset + gap)
        self.end_offset = plain[-1].offset + 1

    def end(self, producer_id: int, *, commit: bool) -> None:
        first = self.open.pop(producer_id, None)
        if first is not None and not commit:
            self.aborted.append((producer_id, first))
            kept = [
                index
                for index, (record, producer) in enumerate(zip(self.records, self.producers, strict=True))
                if producer != producer_id or record.offset < first
            ]
            self.records = [self.records[index] for index in kept]
            self.producers = [self.producers[index] for index in kept]
        self.data += end_transaction_batch(
            commit=commit,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=5,
            base_offset=self.end_offset,
        )
        self.end_offset += 1


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log(draw(st.sampled_from(["t", "orders", "größe"])), draw(st.integers(0, 9)))
    log.end_offset = draw(st.sampled_from([0, 1 << 40]))
    for step, producer_id in draw(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2)), max_size=12)):
        if step < 2:
            log.append(draw, -1)
        elif step < 4:
            log.append(draw, producer_id)
        else:
            log.end(producer_id, commit=step == 4)
    for producer_id in list(log.open):  # all is stable, so a reader of committed records sees this far
        log.end(producer_id, commit=True)
    return log


@st.composite
def chunks(draw: st.DrawFn) -> tuple[FetchedBatches, list[Record], int]:
    """A chunk of a log, what comes out of it, and where the next begins."""
    log = draw(logs())
    first = draw(st.sampled_from([0, 0, 1, 3]))
    start = log.records[first].offset if first < len(log.records) else 0
    data = bytes(log.data)
    if data and draw(st.booleans()):
        # What does not fit is cut off, within the header or behind it.
        end = log.end_offset
        data += build_batch([Plain(end, 0, None, b"cut off")], base_offset=end)[
            : draw(st.sampled_from([10, 65]))
        ]
    chunk = FetchedBatches(log.topic, log.partition, memoryview(data), start, log.aborted)
    expected = [record for record in log.records if record.offset >= start]
    return chunk, expected, max(start, log.end_offset if data else 0)


def rows(batch: pa.RecordBatch) -> list[Record]:
    batch.validate(full=True)
    assert batch.schema == SCHEMA

    def record(row: dict[str, Any], timestamp: int) -> Record:
        extra = tuple((header["key"], header["value"]) for header in row["headers"])
        place = (row["topic"], row["partition"], row["offset"], timestamp, row["key"], row["value"], extra)
        return Record(*place, row["timestamp_type"], row["leader_epoch"], 0)

    times = batch.column("timestamp").cast(pa.int64()).to_pylist()
    return [record(row, time) for row, time in zip(batch.to_pylist(), times, strict=True)]


@pytest.mark.parametrize("columns_min", [1, 1 << 60])
@settings(deadline=None, max_examples=60)
@given(each=chunks())
def test_objects(columns_min, each):
    chunk, expected, next_offset = each
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "COLUMNS_MIN", columns_min)
        found = objects.records_of(chunk)
    assert found == (expected, next_offset, None)
    assert {type(record) for record in found.records} <= {Record}


@settings(deadline=None, max_examples=60)
@given(each=st.lists(chunks(), max_size=4))
def test_arrow(each):
    found = arrow_records_of([chunk for chunk, _, _ in each])
    assert found.fault is None
    assert rows(found.batch) == [record for _, expected, _ in each for record in expected]
    assert found.next_offsets == [next_offset for _, _, next_offset in each]
