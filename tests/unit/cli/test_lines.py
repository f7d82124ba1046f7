"""Lines, files and JSON as records."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.formats.entry import Entry, InputError
from ottla.cli.formats.envelope import envelope_line, read_envelope
from ottla.cli.formats.lines import Lines, Whole, keyed
from ottla.cli.formats.text import read_base64, read_hex
from ottla.client.record import Record, TimestampType


def read(reader: Lines | Whole, *chunks: bytes) -> list[Entry]:
    return [entry for chunk in chunks for entry in reader.feed(chunk)] + list(reader.finish())


def test_a_line_is_a_record() -> None:
    assert read(Lines(keyed(None, bytes)), b"a\nb", b"c\r\n\nd") == [
        Entry(b"a"),
        Entry(b"bc"),
        Entry(b""),
        Entry(b"d"),
    ]


def test_no_input_is_no_record() -> None:
    assert read(Lines(keyed(None, bytes))) == []


def test_keys_stand_before_the_separator() -> None:
    assert read(Lines(keyed(b":", bytes)), b"k:v\n:v\nk:v:w\n") == [
        Entry(b"v", b"k"),
        Entry(b"v", b""),
        Entry(b"v:w", b"k"),
    ]


def test_a_line_without_its_separator_is_refused() -> None:
    reader = Lines(keyed(b": ", bytes))
    with pytest.raises(InputError, match="record 2: no key separator ': ' in it"):
        list(reader.feed(b"k: v\nk:v\n"))
    assert read(Lines(keyed(b":", bytes, keyless=True)), b"k:v\nv\n") == [Entry(b"v", b"k"), Entry(b"v")]


def test_nothing_can_mean_null() -> None:
    assert read(Lines(keyed(b":", bytes, empty_is_null=True)), b"k:\nk:v\n") == [
        Entry(None, b"k"),
        Entry(b"v", b"k"),
    ]
    assert read(Lines(keyed(None, bytes, empty_is_null=True)), b"\nv\n") == [Entry(None), Entry(b"v")]


def test_other_delimiters() -> None:
    assert read(Lines(keyed(None, bytes), b"||"), b"a|", b"|b\n||c") == [
        Entry(b"a"),
        Entry(b"b\n"),
        Entry(b"c"),
    ]


def test_codes() -> None:
    assert read(Lines(keyed(b" ", read_hex)), b"00 ff0A\n") == [Entry(b"\xff\x0a", b"\0")]
    assert read(Lines(keyed(None, read_base64)), b"AQI=\nAQI\n") == [Entry(b"\1\2"), Entry(b"\1\2")]
    with pytest.raises(InputError, match="record 2: 'zz' is not a row of hexadecimal"):
        read(Lines(keyed(None, read_hex)), b"00\nzz\n")
    with pytest.raises(InputError, match="record 1: '!' is not base64"):
        read(Lines(keyed(None, read_base64)), b"!\n")


def test_a_file_is_a_record() -> None:
    assert read(Whole(keyed(None, bytes)), b"a\n", b"b\n") == [Entry(b"a\nb\n")]


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ({"value": "v"}, Entry(b"v")),
        ({"key": "k", "value": None}, Entry(None, b"k")),
        ({"value": {"a": [1, None]}}, Entry(b'{"a":[1,null]}')),
        ({"value": 1.5, "key": 7}, Entry(b"1.5", b"7")),
        ({"value_base64": "/w=="}, Entry(b"\xff")),
        ({"value": "\udcff"}, Entry(b"\xff")),
        ({"value": "v", "headers": {"a": "1", "b": None}}, Entry(b"v", None, (("a", b"1"), ("b", None)))),
        (
            {"value": "v", "headers": [{"key": "a", "value_base64": "/w=="}]},
            Entry(b"v", None, (("a", b"\xff"),)),
        ),
        ({"value": "v", "timestamp": 5, "topic": "t", "offset": 9, "partition": 2}, Entry(b"v", timestamp=5)),
    ],
)
def test_json(line: dict[str, object], entry: Entry) -> None:
    assert read_envelope(json.dumps(line).encode()) == entry


def test_a_partition_can_be_kept() -> None:
    assert read_envelope(b'{"value": "v", "partition": 2}', keep_partition=True) == Entry(b"v", partition=2)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"v",
        b"[1]",
        b'{"a": 1}',
        b'{"value": "v", "timestamp": "now"}',
        b'{"value": 1, "headers": 1}',
        b'{"value_base64": 1}',
        b'{"value": "", "headers": [1]}',
    ],
)
def test_what_is_no_record(line: bytes) -> None:
    with pytest.raises(ValueError):
        read_envelope(line)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"valeu": 1}, 'unknown field "valeu": did you mean value?'),
        ({"keys": "a", "value": 1}, 'unknown field "keys": did you mean key?'),
        ({"value": 1, "header": {}}, 'unknown field "header": did you mean headers?'),
        ({"value": 1, "colour": 1}, 'unknown field "colour": a record has key, '),
        ({"value": 1, "headers": [{"key": "a", "val": "b"}]}, 'unknown field "val": did you mean value?'),
    ],
)
def test_a_field_that_is_unknown_is_refused(line: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        read(Lines(read_envelope), b'{"value": 1}\n' + json.dumps(line).encode())
    assert str(refused.value).startswith(f"record 2: {complaint}")


def test_every_field_that_is_written_is_read() -> None:
    written = Record("t", 1, 2, 3, b"\xff", b"\xff", (("h", b"\xff"),), TimestampType.LOG_APPEND_TIME, 4)
    assert read_envelope(envelope_line(written)) == Entry(b"\xff", b"\xff", (("h", b"\xff"),), timestamp=3)


maybe = st.none() | st.binary(max_size=20)
records = st.builds(
    Record,
    st.just("t"),
    st.integers(0, 9),
    st.integers(0, 1 << 62),
    st.integers(0, 1 << 50),
    maybe,
    maybe,
    # A name that is no UTF-8 comes as it is decoded from the wire.
    st.lists(
        st.tuples(st.binary(max_size=9).map(lambda raw: raw.decode("utf-8", "surrogateescape")), maybe)
    ).map(tuple),
    st.sampled_from(TimestampType),
)


@given(records)
def test_json_reads_back_as_the_same_record(record: Record) -> None:
    line = envelope_line(record)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    found = read_envelope(line, keep_partition=True)
    assert found == Entry(record.value, record.key, record.headers, record.partition, record.timestamp)
