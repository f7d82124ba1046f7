"""One error, with the user's line and a hint."""

import pickle

import pytest
from pyspark.errors import AnalysisException, PySparkTypeError

from ottla.client.errors import TopicUnknown
from ottla.metadata.settings.error import InvalidValue
from ottla.spark.adoption import _class
from ottla.spark.complaint import read
from ottla.spark.failure import SparkFailure, judge, translate, translated
from ottla.spark.line import Line
from tests.unit.spark.session import said

CALLER = Line("/app/main.py", 3, "", "frame.collect()")


def test_a_broken_function() -> None:
    failure = judge(read(said.query(said.IN_A_FUNCTION)), CALLER)
    assert str(failure) == (
        "ZeroDivisionError: integer division or modulo by zero\n"
        '  File "/app/orders.py", line 9, in price\n'
        "    return 1 // (x - 3)\n"
        "hint: the function was given something it cannot take: mend it, or keep such records from it"
    )
    assert failure.condition == "PYTHON_EXCEPTION"
    assert failure.details == said.query(said.IN_A_FUNCTION)


def test_a_column_has_the_line_where_it_was_written() -> None:
    failure = judge(read(said.BY_ZERO), CALLER)
    assert failure.line == Line("/app/orders.py", 31)
    assert failure.message == "Division by zero"
    assert failure.hint.startswith("use `try_divide` to tolerate")


def test_otherwise_the_line_that_called() -> None:
    assert judge(read(said.NO_COLUMN), CALLER).line == CALLER


def test_what_we_said_in_another_process_is_handed_on() -> None:
    failure = judge(read(said.OURS), CALLER)
    assert (
        failure.message
        == "orders: this server does not host this topic-partition (UNKNOWN_TOPIC_OR_PARTITION)"
    )
    assert failure.hint == "create the topic, or check its name"
    assert failure.line == CALLER


def test_a_failure_in_a_failure_keeps_its_line() -> None:
    failure = judge(read(said.FAILURE_IN_FOR_EACH_BATCH), CALLER)
    assert failure.message == "ZeroDivisionError: division by zero"
    assert failure.line == Line("/app/prices.py", 116, "price", "return 1 / x")
    assert failure.hint == "mend it"


def test_advice_of_sparks_becomes_the_hint() -> None:
    failure = judge(read(said.NO_TABLE))
    assert failure.message == "The table or view `nothing` cannot be found"
    assert failure.hint == "verify the spelling and correctness of the schema and catalog."


def test_a_wrapping_gives_way_to_its_cause() -> None:
    text = (
        "Error while doing something\n\tat a.b.C(D.scala:1)\nCaused by: java.io.IOException: the real thing\n"
    )
    assert judge(read(text)).message == "the real thing"


def test_there_is_always_a_hint() -> None:
    assert str(judge(read(""))) == (
        "Spark failed and did not say why\nhint: all that Spark said is in the attribute details of this error"
    )


def test_other_errors_pass() -> None:
    assert translate(KeyError("x")) is None
    with pytest.raises(KeyError), translated():
        raise KeyError("x")


def test_an_error_of_pysparks_own() -> None:
    with pytest.raises(SparkFailure) as caught, translated():
        raise PySparkTypeError(
            errorClass="NOT_EXPECTED_TYPE",
            messageParameters={"arg_name": "condition", "expected_type": "Column", "arg_type": "int"},
        )
    assert caught.value.condition == "NOT_EXPECTED_TYPE"
    assert caught.value.line is not None and caught.value.line.file == __file__
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (TopicUnknown("there is no orders", hint="create it"), "there is no orders", "create it"),
        (
            TopicUnknown("there is no orders"),
            "there is no orders",
            "look at what the brokers said at that time",
        ),
        (
            InvalidValue("linger.ms", "x", "not a number", hint="write 5"),
            "Invalid value x for configuration linger.ms: not a number",
            "write 5",
        ),
    ],
)
def test_an_error_of_our_client(error: Exception, message: str, hint: str) -> None:
    failure = translate(error)
    assert failure is not None
    assert (failure.message, failure.hint) == (message, hint)


def test_a_failure_is_translated_once() -> None:
    failure = SparkFailure("x", hint="y")
    assert translate(failure) is failure
    with pytest.raises(SparkFailure) as caught, translated():
        raise failure
    assert caught.value is failure
    assert failure.line is not None and failure.line.function == "test_a_failure_is_translated_once"


def test_it_serves_as_a_decorator() -> None:
    @translated()
    def ask() -> None:
        raise TopicUnknown("no")

    for _ in range(2):
        with pytest.raises(SparkFailure):
            ask()


def test_it_travels() -> None:
    failure = SparkFailure("x", hint="y", line=CALLER, condition="A", details="z")
    again = pickle.loads(pickle.dumps(failure))
    assert str(again) == str(failure)
    assert (again.condition, again.details) == ("A", "z")


def test_it_is_of_sparks_class_too() -> None:
    made = _class(AnalysisException)
    assert issubclass(made, SparkFailure) and issubclass(made, AnalysisException)
    assert made is _class(AnalysisException)
    assert f"{made.__module__}.{made.__qualname__}" == "ottla.spark.failure.SparkFailure"
