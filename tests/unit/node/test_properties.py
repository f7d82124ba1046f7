"""Properties files, as java.util.Properties reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.node.properties import PropertiesError, parse_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (b"", {}),
        (b"a=b", {"a": "b"}),
        (b"a = b ", {"a": "b "}),
        (b"a:b\nc d\n\te\tf\n", {"a": "b", "c": "d", "e": "f"}),
        (b"a = = b", {"a": "= b"}),
        (b"key", {"key": ""}),
        (b"=value", {"": "value"}),
        (b"# no\n  ! no\n\n\t\nyes=1 # part of it", {"yes": "1 # part of it"}),
        (b"a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        (b"a=1,\\\n    2,\\\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        (b"# comments do not go on\\\na=1", {"a": "1"}),
        (b"a=x\\\n#y", {"a": "x#y"}),
        (b"a=x\\\n\nb=1", {"a": "x", "b": "1"}),
        (b"a=end\\", {"a": "end"}),
        (b"a\\ b\\=c\\:d=e", {"a b=c:d": "e"}),
        (b"a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        (b"a=\\u00e9\\uD83D\\uDE00", {"a": "é😀"}),
        (b"a=\xe9", {"a": "é"}),
        (b"a=1\na=2", {"a": "2"}),
        (
            b"listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
            {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
        ),
    ],
)
def test_lines(text: bytes, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


def test_a_half_escape_is_refused() -> None:
    with pytest.raises(PropertiesError, match="four hexadecimal digits"):
        parse_properties(b"a=\\u12x4")


@given(st.binary())
def test_no_other_error_comes_out(data: bytes) -> None:
    try:
        parse_properties(data)
    except PropertiesError:
        assert b"\\u" in data


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_java_would_store_comes_back(pairs: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        units = text.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    lines = [f"{escaped(key)}={escaped(value)}\n" for key, value in pairs.items()]
    assert parse_properties("".join(lines).encode("latin-1")) == pairs
