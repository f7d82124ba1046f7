"""One error for whatever goes wrong in Spark: what it is, the user's own line, and a hint.

F1  It is short: no Java, no plan, no stack of Spark's. `details` keeps all that Spark said.
F2  Its line is where the user's function broke, in whatever process; else where the column was written that is at
    fault; else where the program called Spark.
F3  It always ends with a hint.
F4  What a session of ours raises (`adoption`) is of Spark's class as well, so `except AnalysisException` still works.

    with translated():
        query.awaitTermination()
"""

import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ottla.client.errors import ClientError
from ottla.metadata.settings.error import SettingError
from ottla.spark.cause import advice_on, cause
from ottla.spark.complaint import Complaint, Raised, read
from ottla.spark.line import Line, calling, lines, own

_BROKEN = "the function was given something it cannot take: mend it, or keep such records from it"
_ADVICE = re.compile(
    r"\.\s+(?=(?:Did you mean|Add|Change|Check|Choose|Consider|Correct|Disable|Enable|Ensure|If|Please|Provide|Remove"
    r"|Rename|Set|Specify|To|Try|Use|Verify|You)\b)"
)
_LOOK = "look at what the brokers said at that time"
_DETAILS = "all that Spark said is in the attribute details of this error"


class SparkFailure(Exception):
    """Spark has failed. `str()` is the whole message."""

    def __init__(
        self, message: str, *, hint: str, line: Line | None = None, condition: str = "", details: str = ""
    ) -> None:
        # Not super(): beside it stand classes of Spark's, which want to ask Java.
        Exception.__init__(self, message)
        self.message = message
        self.hint = hint
        self.line = line
        self.condition = condition
        """Spark's name for what is wrong, where it has one."""
        self.details = details

    def __str__(self) -> str:
        where = f"\n{self.line}" if self.line is not None else ""
        return f"{self.message}{where}\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self.message, self.hint, self.line, self.condition, self.details)


def _remade(message: str, hint: str, line: Line | None, condition: str, details: str) -> SparkFailure:
    return SparkFailure(message, hint=hint, line=line, condition=condition, details=details)


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of Spark and of the client as a SparkFailure, and others unchanged. It is a decorator, too."""
    try:
        yield
    except SparkFailure as failure:
        failure.line = failure.line or calling(failure.__traceback__)
        raise
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        raise known from None


def translate(error: BaseException, caller: Line | None = None) -> SparkFailure | None:
    """Return the failure behind an error of Spark's or of our client's, or None for any other.

    `caller` is the user's own line that called Spark, where the error was not raised yet.
    """
    if isinstance(error, SparkFailure):
        return error
    if isinstance(error, SettingError | ClientError):
        message, _, hint = str(error).partition("\nhint: ")
        hint = error.hint or hint or _LOOK
        return SparkFailure(message, hint=hint, line=caller or calling(error.__traceback__))
    told = _told(error)
    if told is None:
        return None
    return judge(read(*told), caller or calling(error.__traceback__))


def judge(complaint: Complaint, caller: Line | None = None) -> SparkFailure:
    """Return the failure that a complaint comes to; `caller` is the user's own line that called Spark."""
    condition = complaint.conditions[-1] if complaint.conditions else ""
    raised = complaint.raised
    line = _sourced((raised.line if raised else None) or complaint.line or caller)
    if raised is not None and raised.is_ours:
        return _ours(raised, line, condition, complaint.text)
    found = cause(complaint)
    if found is not None:
        message, hint = found
    elif raised is not None:
        name = raised.kind.removeprefix("builtins.")
        message, hint = (f"{name}: {raised.message}" if raised.message else name), _BROKEN
    else:
        # What has no name of Spark's is mostly a wrapping; its innermost cause says more.
        message, hint = _advised((not condition and complaint.root) or complaint.words)
    return SparkFailure(message, hint=hint, line=line, condition=condition, details=complaint.text)


def _sourced(line: Line | None) -> Line | None:
    if line is None or line.source:
        return line
    return replace(line, source=linecache.getline(line.file, line.number).strip())


def _ours(raised: Raised, line: Line | None, condition: str, details: str) -> SparkFailure:
    """Hand on what one of us has said in a process of Spark's."""
    message, _, hint = raised.message.partition("\nhint: ")
    # A failure inside a failure has its line with it.
    within = own(lines(message))
    if within is not None:
        message, line = message.partition('\n  File "')[0], within
    hint = hint or advice_on(message) or _DETAILS
    return SparkFailure(message, hint=hint, line=line, condition=condition, details=details)


def _advised(words: str) -> tuple[str, str]:
    """Spark's own words: what is wrong comes first, and advice after it where there is some."""
    if found := _ADVICE.search(words):
        advice = words[found.end() :].partition("\n")[0].rstrip()
        return words[: found.start()], advice[:1].lower() + advice[1:]
    return words.rstrip(".") or "Spark failed and did not say why", advice_on(words) or _DETAILS


def _told(error: BaseException) -> tuple[str, str] | None:
    """Return what Spark said, its message and its stack, when the error is one of Spark's."""
    from pickle import PicklingError

    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        # Asking it for its words would ask Java, which may be gone.
        text = getattr(error, "_desc", None)
        return (text, getattr(error, "_stackTrace", None) or "") if text else (str(error), "")
    if isinstance(error, Py4JError | PicklingError):
        try:
            return str(error), ""
        except Exception as gone:  # noqa: BLE001  # it asks Java for its words
            return f"Py4JNetworkError: {gone}", ""
    return (f"{type(error).__name__}: {error}", "") if _is_late(error) else None


def _is_late(error: BaseException) -> bool:
    """Whether PySpark stumbled over a session, or a Java, that is no more."""
    if not isinstance(error, AttributeError | ConnectionError):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and re.search(r"/(pyspark|py4j)/", last.tb_frame.f_code.co_filename) is not None
