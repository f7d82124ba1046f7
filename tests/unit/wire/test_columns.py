"""Records as columns: what is refused, at the place of one record and of many, and what is read in steps and rounds."""

import tracemalloc

import pytest

from ottla.wire import columns as module
from ottla.wire.batch import Batch, build_batch
from ottla.wire.columns import decode_columns, decode_headers
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record, zigzag


@pytest.fixture(autouse=True, params=["compiled", "numpy"])
def reader(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(module, "_records", None)
    elif module._records is None:
        pytest.skip("ottla.wire._records was not built: there was no C compiler")


def read(body: bytes, count: int) -> list[tuple[int, int, bytes, bytes]]:
    """Offset, timestamp, key and value of each record; headers are read, and then left."""
    batch = Batch(0, 49 + len(body), 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    columns = decode_columns([batch], [body])
    decode_headers(columns)
    return [
        (offset, timestamp, body[key:key_end], body[value:value_end])
        for offset, timestamp, key, key_end, _, value, value_end, _ in zip(
            *(column.tolist() for column in columns[1:9]), strict=True
        )
    ]


def record(*fields: str) -> bytes:
    content = bytes.fromhex("".join(fields))
    return zigzag(len(content)) + content


GOOD = record("00", "02", "04", "02 6b", "04 7676", "02", "02 68", "02 78")
NONSENSE = {
    "-1 headers": record("00", "00", "00", "01", "01", "01"),
    "-1 headers, and something else": record("00", "00", "00", "01", "01", "01", "00"),
    "32 headers in no bytes": record("00", "00", "00", "01", "01", "40"),
    "2 headers in the bytes of one": record("00", "00", "00", "01", "01", "04", "02 68", "02 78"),
    "2 headers, one of them in the next record": record("00", "00", "00", "01", "01", "04", "02 68", "02 78", "00"),
    "1 header in the bytes of two": record("00", "00", "00", "01", "01", "02", "02 68", "02 78", "02 68", "02 78"),
    "no headers, and a byte": record("00", "00", "00", "01", "01", "8000", "00"),
    "a key of 32 bytes": record("00", "00", "00", "40", "01", "00"),
    "a value of 32 bytes": record("00", "00", "00", "01", "40", "00"),
    "a value up to the end": record("00", "00", "00", "01", "02", "00"),
    "a value beyond the end": record("00", "00", "00", "01", "08", "00"),
    "a byte too many": record("00", "00", "00", "01", "01", "00", "00"),
    "a size below zero": b"\x0d" + GOOD[1:6] + b"\0",
    "a header without a name": record("00", "00", "00", "01", "01", "02", "01", "01"),
    "a size that does not end": bytes.fromhex("80808080808000"),
    "an offset that does not end": record("00", "00", "808080808000", "01", "01", "00"),
    "a timestamp that does not end": record("00", "80" * 10 + "00", "00", "01", "01", "00"),
    "a size of nothing": b"\0" * 7,
}  # fmt: skip


@pytest.mark.parametrize("text", NONSENSE)
@pytest.mark.parametrize("before", [0, 1, 200])
@pytest.mark.parametrize("behind", [0, 1, 200])
@pytest.mark.parametrize("times", [1, 200])
def test_nonsense_is_refused_wherever_it_is(text, before, behind, times):
    with pytest.raises(ProtocolError):
        read(GOOD * before + NONSENSE[text] * times + GOOD * behind, before + times + behind)


def test_nonsense_that_is_refused_is_next_to_what_is_not():
    assert read(GOOD, 1) == [(2, 1, b"k", b"vv")]
    assert read(record("00", "02", "04", "02 6b", "04 7676", "8000"), 1) == [(2, 1, b"k", b"vv")]
    longest = record("00", "82" + "80" * 8 + "00", "8480808000", "02 6b", "04 7676", "00")
    assert read(longest, 1) == [(2, 1, b"k", b"vv")]
    assert read(b"", 0) == []


def test_every_cut_and_every_wrong_count_is_refused():
    data = GOOD * 2 + record("00", "02", "04", "02 6b", "04 7676", "00") + GOOD
    read(data, 4)
    for end in range(len(data)):
        with pytest.raises(ProtocolError):
            read(data[:end], 4)
    for count in (-1, 0, 3, 5, 1 << 31):
        with pytest.raises(ProtocolError):
            read(data, count)


@pytest.mark.parametrize(
    ("body", "count"),
    [(GOOD, (1 << 31) - 1), (record("00", "00", "00", "01", "01", zigzag(1 << 24).hex()), 1)],
)
def test_a_claim_costs_nothing(body, count):
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="claims"):
            read(body, count)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 50, 70, 9_000])
def test_records_of_one_length_are_found_by_steps(size, monkeypatch):
    monkeypatch.setattr(module, "_records", None)
    found = []
    steps = module._steps
    monkeypatch.setattr(module, "_steps", lambda *given: found.append(steps(*given)) or found[-1])
    records = [Record(n, 0, None, bytes([n & 0x7F]) * (size + (n == 700))) for n in range(1000)]
    batch = build_batch(records)
    columns = decode_columns([Batch.parse(batch)], [memoryview(batch)[61:]])
    assert (columns.value_ends - columns.value_starts).tolist() == [len(each.value) for each in records]
    # Offsets from 64 on are longer by a byte, and so is one value, behind which the next guess waits for a while.
    assert [count for count, _ in found if count] == [64, 636, 268]


def test_a_run_goes_on_through_small_batches(monkeypatch):
    monkeypatch.setattr(module, "_records", None)
    found = []
    steps = module._steps
    monkeypatch.setattr(module, "_steps", lambda *given: found.append(steps(*given)) or found[-1])
    batch = build_batch([Record(n, 0, None, bytes([n]) * 90) for n in range(16)])
    columns = decode_columns([Batch.parse(batch)] * 63, [memoryview(batch)[61:]] * 63)
    assert found == [(16 * 63, (len(batch) - 61) // 16)]
    assert [columns.data[start] for start in columns.value_starts.tolist()] == list(range(16)) * 63


def test_a_run_must_end_where_its_batch_does():
    body = record("00 00 00 01 02 01 00") * 64
    batch = Batch(0, 49 + len(body), 0, 2, 0, 0, 63, 0, 0, -1, -1, -1, 63)
    with pytest.raises(ProtocolError, match="do not fill"):
        decode_columns([batch, batch], [body, body])


def test_a_length_of_the_same_first_byte_is_another_length():
    sizes = [200] * 50 + [200 + 64] * 50
    records = [Record(0, 0, None, bytes(size)) for size in sizes]
    batch = build_batch(records)
    columns = decode_columns([Batch.parse(batch)], [memoryview(batch)[61:]])
    assert (columns.value_ends - columns.value_starts).tolist() == sizes


def test_lengths_that_change_all_the_time_cost_few_guesses(monkeypatch):
    monkeypatch.setattr(module, "_records", None)
    guesses = []
    steps = module._steps
    monkeypatch.setattr(module, "_steps", lambda *given: guesses.append(given) or steps(*given))
    batch = build_batch([Record(n, 0, None, bytes(n % 7)) for n in range(100)])
    decode_columns([Batch.parse(batch)] * 100, [memoryview(batch)[61:]] * 100)
    assert 5 < len(guesses) < 12


def test_headers_by_rounds_and_by_walks():
    headers = (("a", b"1"), ("", None), ("bb", b""))
    records = [
        Record(n, 0, None, b"v", headers[: n % 4] + (headers * 40 if n == 500 else ())) for n in range(1000)
    ]
    batch = build_batch(records)
    columns = decode_columns([Batch.parse(batch)], [memoryview(batch)[61:]])
    data = columns.data
    found = decode_headers(columns)
    assert found.counts.tolist() == [len(each.headers) for each in records]
    assert [
        (data[name:name_end].decode(), None if null else data[value:value_end])
        for name, name_end, value, value_end, null in zip(*(part.tolist() for part in found[1:]), strict=True)
    ] == [header for each in records for header in each.headers]
