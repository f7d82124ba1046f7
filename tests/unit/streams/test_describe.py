"""A topology in words and as a picture."""

import pytest

from ottla.streams import App


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
        "  look               ← flat_map_values-1  string → string          Python at print",
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
    assert "(it has an if, an and or an or)" in said
    assert "(its whole numbers may have more than 38 digits)" in said
    # A join calls its function, whatever that is.
    (line,) = [each for each in said.splitlines() if each.startswith("  joined")]
    assert "keeps state, Python at" in line
