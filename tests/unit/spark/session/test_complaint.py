"""What Spark says is taken apart: conditions, words, and what Python raised where."""

import pytest

from ottla.spark.complaint import read
from ottla.spark.line import Line
from tests.unit.spark.session import said


def test_conditions_and_words() -> None:
    found = read(said.NO_COLUMN)
    assert found.conditions == ("UNRESOLVED_COLUMN.WITH_SUGGESTION",)
    assert found.words.startswith(
        "A column, variable, or function parameter with name `idd` cannot be resolved."
    )
    assert found.words.endswith("[`id`]")
    assert found.raised is None


def test_a_query_is_peeled_off() -> None:
    found = read(said.OTHER_STATE)
    assert found.conditions == ("STREAM_FAILED", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE")
    assert found.words.startswith("Provided key schema does not match")
    assert "Identifier" not in found.words and "SQLSTATE" not in found.words


def test_a_stage_is_peeled_off() -> None:
    assert read(said.CRASHED).words.startswith("Python worker exited unexpectedly (crashed).")
    assert "\tat" not in read(said.CRASHED).words


def test_the_innermost_cause() -> None:
    assert read(said.NO_KUBERNETES).root == "Connection refused"
    assert read("short", said.NO_KUBERNETES).root == "Connection refused"
    assert read("short").root == ""


@pytest.mark.parametrize(
    ("text", "kind", "message", "line"),
    [
        (
            said.IN_A_FUNCTION,
            "ZeroDivisionError",
            "integer division or modulo by zero",
            Line("/app/orders.py", 9, "price", "return 1 // (x - 3)"),
        ),
        # The library that it called is not its own.
        (
            said.IN_AN_RDD,
            "ZeroDivisionError",
            "division by zero",
            Line("/app/orders.py", 34, "<lambda>", "frame.rdd.map(lambda x: x / 0)"),
        ),
        (
            said.CHAINED,
            "ValueError",
            "no price for pear:\nask sales",
            Line(
                "/app/orders.py",
                22,
                "look_up",
                'raise ValueError("no price for pear:\\nask sales") from error',
            ),
        ),
        (said.FOR_EACH_BATCH, "KeyError", "'boom'", Line("/app/orders.py", 41, "each", '{}["boom"]')),
        (
            said.OURS,
            "ottla.client.errors.Refused",
            "orders: this server does not host this topic-partition (UNKNOWN_TOPIC_OR_PARTITION)\n"
            "hint: create the topic, or check its name",
            None,
        ),
    ],
)
def test_what_python_raised(text: str, kind: str, message: str, line: Line | None) -> None:
    raised = read(text).raised
    assert raised is not None
    assert (raised.kind, raised.message, raised.line) == (kind, message, line)


def test_a_traceback_that_java_repeats_counts_once() -> None:
    text = f"{said.IN_A_FUNCTION}\n\tat org.apache.spark.Some.thing(Thing.scala:1)\nCaused by: {said.CHAINED}"
    raised = read(text).raised
    assert raised is not None and raised.kind == "ZeroDivisionError"


@pytest.mark.parametrize(
    "text", ["", "Traceback (most recent call last):", "Traceback (most recent call last):\n  x\n"]
)
def test_half_a_traceback(text: str) -> None:
    assert read(text).raised is None


def test_where_a_column_was_written() -> None:
    assert read(said.BY_ZERO).line == Line("/app/orders.py", 31)
    theirs = said.BY_ZERO.replace(
        "/app/orders.py", "/srv/env/lib/python3.11/site-packages/pyspark/sql/column.py"
    )
    assert read(theirs).line is None
