"""Templates: what is written, what is read, and that the one reads the other."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.formats.entry import Entry, InputError
from ottla.cli.formats.reader import TemplateReader
from ottla.cli.formats.template import TemplateError, unescape
from ottla.cli.formats.writer import compile_writer, fields_template
from ottla.client.record import Record

RECORD = Record("t", 3, 42, 1_760_000_000_123, b"k\xff", b"value", (("a", b"1"), ("b", None)), leader_epoch=5)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("%t[%p]@%o: %v", b"t[3]@42: value"),
        ("%s %S %T", b"value 5 1760000000123"),
        ("%k %K %V %H %e %i", b"k\xff 2 5 2 5 1"),
        ("%R", struct.pack(">i", 5)),
        ("%h", b"a=1,b="),
        ("%h{<%k=%v{hex}>}", b"<a=31><b=>"),
        ("%h{%K:%V }", b"1:1 1:-1 "),
        ("%d{iso}", b"2025-10-09T08:53:20.123Z"),
        ("%d{strftime[%F %H]}", b"2025-10-09 08"),
        ("%d{strftime### [%F] ###}", b" [2025-10-09] "),
        ("%d{strftime{{%Y}}}", b"2025"),
        ("%k{hex} %k{base64} %k{base64raw} %v{json}", b'6bff a/8= a/8 "value"'),
        ("%o{big32}%o{little16}%o{byte}%o{hex8}%o{hex64}", b"\0\0\0**\0*2a000000000000002a"),
        ("%o{bool} %p{ascii}", b"true 3"),
        (r"\t\n\r\\\x41\0", b"\t\n\r\\A\0"),
        ("100%% %{%}", b"100% {}"),
        ("größe %v", "größe value".encode()),
    ],
)
def test_writing(template: str, text: bytes) -> None:
    assert compile_writer(template)(RECORD, 1) == text


def test_numbers_are_read_out_of_bytes() -> None:
    record = RECORD._replace(value=struct.pack(">ibH", -5, -1, 7) + struct.pack("<q", 9) + b"xyz")
    assert compile_writer("%v{unpack[>ixbxHx<qxcs$]}")(record, 1) == b"-5 -1 7 9 xyz"
    assert compile_writer("%v{unpack[i$]}")(record, 1) == b"-5 (14 bytes are left over)"
    assert compile_writer("%v{unpack[q]}")(RECORD, 1) == b" (3 bytes are missing)"


def test_null_is_what_stands_for_it() -> None:
    gone = RECORD._replace(key=None, value=None)
    assert compile_writer("%k|%v|%V")(gone, 1) == b"||-1"
    assert compile_writer("%k|%v{hex}|%h", b"NULL")(gone, 1) == b"NULL|NULL|a=1,b=NULL"


@pytest.mark.parametrize(
    "template",
    [
        *("%", "%z", "%v{", "%v{hex", "%v{octal}", "%o{hex}", "%d{strftime}", "%d{strftime[%F}"),
        *("%v{unpack[z]}", "\\q", "\\x4", "%h{%k", "%h{%o}", "%v{hex x}"),
    ],
)
def test_templates_that_mean_nothing(template: str) -> None:
    with pytest.raises(TemplateError):
        compile_writer(template)


def test_fields_by_name() -> None:
    template = fields_template(["partition", "key", "value"], "%|")
    assert compile_writer(template)(RECORD, 1) == b"3%|k\xff%|value"
    with pytest.raises(TemplateError, match="colour is no field"):
        fields_template(["colour"], "\t")


def test_delimiters_have_escapes_and_no_fields() -> None:
    assert unescape(r"\x00%v\t") == b"\0%v\t"


def read(template: str, *chunks: bytes, **options: bool) -> list[Entry]:
    reader = TemplateReader(template, **options)
    return [entry for chunk in chunks for entry in reader.feed(chunk)] + list(reader.finish())


def test_reading_up_to_what_stands_between() -> None:
    assert read(r"%k: %v\n", b"a: 1\nb: 2: 3\n") == [Entry(b"1", b"a"), Entry(b"2: 3", b"b")]


def test_the_last_line_break_may_be_missing() -> None:
    assert read(r"%v\n", b"a\n", b"b") == [Entry(b"a"), Entry(b"b")]


def test_reading_does_not_depend_on_how_bytes_come_in() -> None:
    data = b"".join(b"key-%d => %d\r\n" % (each, each) for each in range(50))
    assert read(r"%k => %v\r\n", *(data[at : at + 1] for at in range(len(data)))) == read(
        r"%k => %v\r\n", data
    )


def test_reading_by_length() -> None:
    data = struct.pack(">i", 2) + b"k1" + struct.pack(">i", 3) + b"abc" + struct.pack(">ii", -1, 0)
    assert read("%K{big32}%k%V{big32}%v", data) == [Entry(b"abc", b"k1"), Entry(b"", None)]
    assert read("%V{hex8}%v", b"03abc00") == [Entry(b"abc"), Entry(b"")]
    assert read("%V %v,", b"3 a,b,1 c,") == [Entry(b"a,b"), Entry(b"c")]


def test_reading_everything_else() -> None:
    assert read(r"%p %d %h %v\n", b"2 1760000000000 a=1,b= x\n", keep_partition=True) == [
        Entry(b"x", None, (("a", b"1"), ("b", b"")), 2, 1_760_000_000_000)
    ]
    assert read(r"%p %v\n", b"2 x\n") == [Entry(b"x")]
    assert read(r"%k{hex} %v{base64}\n", b"ff AQ==\n") == [Entry(b"\x01", b"\xff")]
    assert read(r"%v{json}\n", b'{"a": 1}\n') == [Entry(b'{"a":1}')]
    assert read(r"%t %v\n", b"t \n", empty_is_null=True) == [Entry(None)]


def test_a_text_at_the_end_takes_all() -> None:
    assert read("%k,%v", b"a,b\nc", b"\nd") == [Entry(b"b\nc\nd", b"a")]


@pytest.mark.parametrize(
    "template", ["%k%v", "%t", r"\n", "%v{unpack[i]}", "%h{%k} %v", "%i %v", "%K{octal}%k"]
)
def test_templates_that_cannot_be_read_with(template: str) -> None:
    with pytest.raises(TemplateError):
        TemplateReader(template)


@pytest.mark.parametrize(
    ("template", "data", "complaint"),
    [
        (r"%k,%v\n", b"a,1\nb\n", "record 2: the input ends inside it"),
        (r"%v{hex}\n", b"00\nxx\n", "record 2: 'xx' is not a row of hexadecimal"),
        (r"<%v>", b"<a>b", "record 2: there is b'b' where the format has b'<'"),
        ("%V{big32}%v", b"\0\0\0\5abc", "record 1: the input ends inside it"),
        (r"%p %v\n", b"x y\n", "where a number should be"),
        (r"%h %v\n", b"nonsense y\n", "is not a header"),
    ],
)
def test_input_that_is_something_else(template: str, data: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read(template, data)


@given(st.lists(st.tuples(st.none() | st.binary(max_size=50), st.binary(max_size=50))))
def test_what_is_written_by_length_is_read_back(pairs: list[tuple[bytes | None, bytes]]) -> None:
    template = "%K{big32}%k%V{little32}%v"
    write = compile_writer(template)
    data = b"".join(write(Record("t", 0, 0, 0, key, value), 1) for key, value in pairs)
    assert [(each.key, each.value) for each in read(template, data)] == pairs
