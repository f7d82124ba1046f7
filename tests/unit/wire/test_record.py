"""Records in wire form: bytes known from the format, bounds, and the walk over them."""

import pytest

from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record, decode_records, encode_records, walk, zigzag

RECORDS = [
    Record(5, 1000, b"k", b"v"),
    Record(6, 1001, None, None),
    Record(7, 999, b"", b"", (("a", b"1"), ("b", None), ("", b""))),
    Record(3000, 1 << 40, b"k" * 3000, b"v" * 70_000, (("h" * 200, b"x" * 5000),)),
]


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8192, "808001"),
        ((1 << 31) - 1, "feffffff0f"),
        (-(1 << 31), "ffffffff0f"),
        ((1 << 63) - 1, "feffffffffffffffff01"),
        (-(1 << 63), "ffffffffffffffffff01"),
    ],
)
def test_varint(number, encoded):
    assert zigzag(number).hex() == encoded


def test_bytes_of_one_record():
    # size 15, attributes 0, timestamp +1, offset +2, key of 1, value of 2, one header
    data, max_timestamp = encode_records([Record(12, 101, b"k", b"vv", (("h", b"x"),))], 10, 100)
    assert (
        data.hex()
        == "1a" + "00" + "02" + "04" + "02" + "6b" + "04" + "7676" + "02" + "02" + "68" + "02" + "78"
    )
    assert max_timestamp == 101


def test_round_trip():
    data, max_timestamp = encode_records(RECORDS, 5, 1000)
    assert decode_records(data, 4, 5, 1000) == RECORDS
    assert max_timestamp == 1 << 40


def test_append_time_overrides():
    data, _ = encode_records(RECORDS, 5, 1000)
    assert {record.timestamp for record in decode_records(data, 4, 5, 1000, 77)} == {77}


def test_header_names_that_are_no_utf8_survive():
    data, _ = encode_records([Record(0, 0, None, None, (("aa", b""),))], 0, 0)
    odd = data.replace(b"aa", b"\xff\xfe")
    assert encode_records(decode_records(odd, 1, 0, 0), 0, 0)[0] == odd


def test_every_cut_and_every_wrong_count_is_refused():
    data, _ = encode_records(RECORDS[:3], 5, 1000)
    for end in range(len(data)):
        for read in (lambda cut: decode_records(cut, 3, 0, 0), lambda cut: list(walk(cut, 3))):
            with pytest.raises(ProtocolError):
                read(data[:end])
    for count in (0, 2, 4, 1 << 31):
        with pytest.raises(ProtocolError):
            decode_records(data, count, 0, 0)
        with pytest.raises(ProtocolError):
            list(walk(data, count))


@pytest.mark.parametrize(
    "text",
    [
        "0c" + "00" + "00" + "00" + "01" + "01" + "01",  # -1 headers
        "0c" + "00" + "00" + "00" + "01" + "01" + "40",  # 32 headers in no bytes
        "0c" + "00" + "00" + "00" + "40" + "01" + "00",  # a key of 32 bytes
        "0c" + "00" + "00" + "00" + "01" + "40" + "00",  # a value of 32 bytes
        "0e" + "00" + "00" + "00" + "01" + "01" + "00" + "00",  # a byte too many
        "01" + "00" + "00" + "00" + "01" + "01" + "00",  # a size below zero
        "10" + "00" + "00" + "00" + "01" + "01" + "02" + "01" + "01",  # a header without a name
        "ffffffffffff01",  # a varint that does not end in five bytes
        "1a00" + "ff" * 10 + "01" + "00" + "01" + "01" + "00",  # a varlong that does not end in ten
    ],
)
def test_nonsense(text):
    with pytest.raises(ProtocolError):
        decode_records(bytes.fromhex(text), 1, 0, 0)


def test_walk_sees_what_decode_sees():
    data, _ = encode_records(RECORDS, 5, 1000)
    spans = list(walk(data, 4))
    assert [(span.offset_delta + 5, span.timestamp_delta + 1000, span.key) for span in spans] == [
        record[:3] for record in RECORDS
    ]
    assert [span.has_value for span in spans] == [True, False, True, True]
    assert spans[0].start == 0
    assert spans[-1].end == len(data)
    for span, record in zip(spans, RECORDS, strict=True):
        assert decode_records(data[span.start : span.end], 1, 5, 1000) == [record]
        # The tail with another timestamp in front is the same record at another time.
        body = b"\0" + zigzag(7) + data[span.tail : span.end]
        assert decode_records(zigzag(len(body)) + body, 1, 5, 0) == [record._replace(timestamp=7)]
