"""A topology in words and as a picture."""

import re
from typing import Any

import pytest

from ottla.streams import App, Processor


def test_words_and_picture(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("word-count")
    words = app.stream("lines").flat_map_values(lambda line: line.lower().split())
    words.peek(print, name="look").group_by(lambda word: word, name="by-word").count(name="counts").to(
        "counts"
    )
    app.describe()
    said = capsys.readouterr().out
    words_part, _, picture = said.partition("\n\n")
    assert words_part.splitlines() == [
        "word-count",
        "  stream-1           lines                string → string",
        "  flat_map_values-1  ← stream-1           string → string          as an expression",
        "  look               ← flat_map_values-1  string → string          Python at print (it may do anything)",
        "  by-word            ← look               string → string          as an expression",
        "  counts             ← by-word            string → bigint          keeps state",
        "  to_stream-1        ← counts             string → bigint",
        "  to-1               ← to_stream-1        → counts (string, long)",
    ]
    assert picture.splitlines() == [
        "flowchart LR",
        '    n0("stream-1")',
        '    t0[("lines")]',
        "    t0 --> n0",
        '    n1("flat_map_values-1")',
        "    n0 --> n1",
        '    n2("look")',
        "    n1 --> n2",
        '    n3("by-word")',
        "    n2 --> n3",
        '    n4[["counts"]]',
        "    n3 --> n4",
        '    n5("to_stream-1")',
        "    n4 --> n5",
        '    n6("to-1")',
        "    n5 --> n6",
        '    t1[("counts")]',
        "    n6 --> t1",
    ]


def test_python_is_named_by_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("app")
    app.stream("a").filter(lambda v: "x" in v).to(lambda v: v)
    app.describe()
    said = capsys.readouterr().out
    assert "Python at tests/unit/streams/test_describe.py:" in said
    assert "→ by record (string, string)" in said


def test_global_tables_are_only_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("app")
    app.stream("a").join(app.global_table("b"), lambda v, row: row).to("c")
    app.describe()
    assert "n1 -.-> n2" in capsys.readouterr().out


def test_why_a_function_is_called_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("app")
    numbers = app.stream("a", value=int)
    numbers.filter(lambda v: v > 1 and v < 9).map_values(lambda v: v * v * v).to("b")
    numbers.join(app.table("c", value=int), lambda v, row: v + row, name="joined").to("d")
    app.describe()
    said = capsys.readouterr().out
    assert (
        "(it has an if, an and or an or; paths part at stream-1, and one leads to what keeps state)" in said
    )
    assert "(its whole numbers may have more than 38 digits; " in said
    # A join calls its function, whatever that is.
    line = line_of("joined", said)
    assert "keeps state, Python at" in line and line.endswith("(what keeps state is done by Python)")


def line_of(name: str, said: str) -> str:
    (line,) = [each for each in said.splitlines() if each.startswith(f"  {name} ")]
    return line


class Nothing(Processor):
    """A processor."""


def told(app: App, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """How an operator is computed, without the place."""
    app.describe()
    line = line_of(name, capsys.readouterr().out)
    how = line.split("  ")[-1].strip()
    return re.sub(r"Python at \S+:\d+", "Python at …", how)


def test_what_is_behind_state_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("app")
    counts = app.stream("a").filter(lambda v: v != "x", name="before").group_by_key().count(name="counts")
    counts.filter(lambda v: v > 1, name="after").to_stream().map_values(lambda v: v + 1, name="more").to("b")
    assert told(app, "before", capsys) == "as an expression"
    for name in ("after", "more"):
        assert told(app, name, capsys) == "Python at … (it is behind counts, which keeps state)"


def test_where_paths_part_all_are_called_if_one_is(capsys: pytest.CaptureFixture[str]) -> None:
    for last, because in (
        (lambda s: s.to("c"), None),
        (lambda s: s.flat_map_values(lambda v: [v], name="many").to("c"), "many is done by Python"),
        (lambda s: s.group_by_key().count().to("c"), "one leads to what keeps state"),
        (lambda s: s.for_each(print), None),
    ):
        app = App("app")
        one = app.stream("a", value=Any if because is None else str).filter(lambda k, v: k != "", name="one")
        one.filter(lambda k, v: k != "x", name="two").to("b")
        last(one)
        assert told(app, "one", capsys) == "as an expression"
        said = f"Python at … (paths part at one, and {because})"
        assert told(app, "two", capsys) == ("as an expression" if because is None else said)


def test_dead_letters_part_paths_too(capsys: pytest.CaptureFixture[str]) -> None:
    said = "Python at … (records that cannot be read leave in between, for the dead letters)"
    for timestamp in (None, lambda v: v):
        app = App("app", dead_letters="dead")
        stream = app.stream("a", value=int, timestamp=timestamp, name="timed")
        stream.map_values(lambda v: v + 1, name="more").to("b")
        assert told(app, "more", capsys) == (said if timestamp else "as an expression")
        if timestamp:
            assert told(app, "timed", capsys) == said


def test_what_always_is_python_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("app")
    stream, table = app.stream("a", value=int), app.table("b", value=int)
    stream.group_by_key().reduce(lambda one, other: one + other, name="sum").to("o")
    stream.process(Nothing, name="mine").to("p")
    stream.join(app.global_table("g"), lambda v, row: v, on=lambda k, v: k, name="looked").to("q")
    table.group_by(lambda k, v: (k, v), name="groups").count().to("r")
    app.stream("f", value=float).to(lambda v: "x", name="floats")
    app.stream("any", value=Any).select_key(lambda v: v, key=Any, name="key").to("s")
    state = "(what keeps state is done by Python)"
    assert told(app, "sum", capsys) == f"keeps state, Python at … {state}"
    assert told(app, "mine", capsys) == "keeps state, Python at … (it may do anything)"
    assert "(rows are looked up by Python)" in told(app, "looked", capsys)
    assert told(app, "groups", capsys) == "Python at … (changes of tables are moved by Python)"
    assert told(app, "floats", capsys) == "Python at … (double is written by Python)"
    assert told(app, "key", capsys) == "Python at … (equal keys are to look alike)"
