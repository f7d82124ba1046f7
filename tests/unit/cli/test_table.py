"""Tables: what lines up, what is left out, and what a stranger's name cannot do."""

import pytest

from ottla.cli.output.table import Column, cell, facts, table, width


def test_columns_line_up() -> None:
    rows = [
        {"name": "orders", "partitions": 12, "leader_epoch": 3},
        {"name": "a-longer-name", "partitions": 3, "leader_epoch": None},
    ]
    assert table(rows, ["name", "partitions", Column("leader_epoch", "epoch")]) == [
        "NAME           PARTITIONS  EPOCH",
        "orders                 12      3",
        "a-longer-name           3      -",
    ]


def test_a_table_without_rows_has_headings() -> None:
    assert table([], ["name", "in_sync"]) == ["NAME  IN SYNC"]


def test_wide_letters_line_up_as_they_are_seen() -> None:
    lines = table([{"name": "注文", "n": 1}, {"name": "e\u0301tat", "n": 22}], ["name", "n"])
    assert {width(line) for line in lines[1:]} == {len("NAME   N")}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (False, "no"),
        ([1, 2], "1,2"),
        ([], "-"),
        ({"a": 1}, "a=1"),
        (0, "0"),
        (1234.5678, "1,234.6"),
        (0.0123456, "0.0123"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\u2028", "\\u2028"),
        ("größe", "größe"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell(value) == text


def test_facts_line_up() -> None:
    assert facts({"id": 1, "in_sync": [1, 2]}) == ["id       1", "in sync  1,2"]
