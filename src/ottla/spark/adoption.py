"""Errors of Java's, as they come out of every call of Spark's: made a SparkFailure before the program sees them.

PySpark turns an error of Java's into one of Python's in one function, which this replaces by one that asks the
original and goes on from there. What it returns is of the class that PySpark chose, and a SparkFailure: programs that
catch PySpark's errors still do.
"""

from contextvars import ContextVar
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import UnknownException
from pyspark.errors.exceptions import captured

from ottla.spark.failure import SparkFailure, translate
from ottla.spark.line import calling

_classes: dict[type[Exception], type[Exception]] = {}
_is_inner: ContextVar[bool] = ContextVar("ottla_is_inner", default=False)


def adopt() -> None:
    """Have this process raise Java's errors as SparkFailure from now on."""
    original = captured.convert_exception
    if getattr(original, "is_ottlas", False):
        return

    def convert(java_error: Any) -> Any:
        # An error converts its causes while it is made; those stay as they are.
        if _is_inner.get():
            return original(java_error)
        token = _is_inner.set(True)
        try:
            error = original(java_error)
        finally:
            _is_inner.reset(token)
        return adopted(error, java_error)

    convert.is_ottlas = True  # type: ignore[attr-defined]
    captured.convert_exception = convert  # type: ignore[assignment]


def adopted(error: Exception, java_error: Any) -> Exception:
    """Return an error of Spark's as a SparkFailure that is of Spark's class, too."""
    failure = translate(error, calling())
    if failure is None or failure is error:
        return error
    unknown = isinstance(error, UnknownException)
    # Those it has no class for, PySpark leaves to py4j.
    theirs: type[Exception] = Py4JJavaError if unknown else type(error)
    made = _class(theirs)
    one = cast(SparkFailure, made.__new__(made))
    one.__dict__.update(error.__dict__)
    if unknown:
        Py4JJavaError.__init__(one, failure.message, java_error)
    SparkFailure.__init__(
        one,
        failure.message,
        hint=failure.hint,
        line=failure.line,
        condition=failure.condition,
        details=failure.details,
    )
    return one


def _class(theirs: type[Exception]) -> type[Exception]:
    if theirs in _classes:
        return _classes[theirs]
    named = {
        "__module__": SparkFailure.__module__,
        "__qualname__": SparkFailure.__qualname__,
        "__doc__": SparkFailure.__doc__,
    }
    made = _classes[theirs] = type(SparkFailure.__name__, (SparkFailure, theirs), named)
    return made
