"""What Spark says when it fails, taken apart: which of its conditions, in which words, and what Python raised where.

Spark wraps a cause into a stage, the stage into a query, and the query into a report with its plan; each adds its name
in brackets at the front and its SQLSTATE at the end. Python's traceback is somewhere in the middle, if Python failed.
Nothing here knows Spark but by its words, so that all of it can be tested by words.
"""

import re
from dataclasses import dataclass

from ottla.spark.line import Line, lines, own

_HEADER = "Traceback (most recent call last):"
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ?")
_STATE = re.compile(r"\.?\s*SQLSTATE: [0-9A-Z]{5}")
# Where a message ends, and stacks and reports begin.
_END = re.compile(
    r"^\s+at [\w.$]+[./(]|^=== Streaming Query ===|^== (?:DataFrame|SQL) |^Driver stacktrace:|^Caused by: "
    r"|^JVM stacktrace:|^\s*\.\.\. \d+ more|^\s*SQLSTATE: ",
    re.MULTILINE,
)
_PLAN = re.compile(r";?\n(?:['!~*]?[A-Z]\w+ ?[\[(]|\+- |:- )")
_WRAPPING = (
    re.compile(r"^An error occurred while calling [^\n]*\n:? ?"),
    re.compile(r'^Exception in thread "[^"]*" '),
    re.compile(r"^requirement failed: "),
    re.compile(r"^Query (?:\S+ )?\[id = [^\]]*\] terminated with exception: "),
    re.compile(r"^Job aborted due to stage failure: .*?\): ", re.DOTALL),
    re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error|Throwable)\w*: "),
)
_CAUSED = re.compile(r"^Caused by: ([^\n]+)", re.MULTILINE)
_CALL_SITE = re.compile(r'"[^"\n]+" was called from\n(?P<file>[^\n]+):(?P<number>\d+)')
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Raised:
    """An error of Python's, as its traceback told it."""

    kind: str
    """Its class, by its whole name."""
    message: str
    line: Line | None
    """The user's own line that raised it; None where the error is ours or Spark's."""

    @property
    def is_ours(self) -> bool:
        """Whether it is worded for the user already."""
        return self.kind.startswith("ottla.")


@dataclass(frozen=True, slots=True)
class Complaint:
    """What Spark said."""

    text: str
    """All of it."""
    conditions: tuple[str, ...]
    """Spark's names for what is wrong, the outermost first."""
    words: str
    """Its message, without names, states, plans and stacks."""
    root: str
    """The message of the innermost cause that Java told, or none."""
    raised: Raised | None
    line: Line | None
    """The user's own line that made the column or frame that it is about."""


def read(text: str, stack: str = "") -> Complaint:
    """Take apart what Spark said: the message of its error, and the stack that Java printed of it."""
    message, _, traceback = text.partition(_HEADER)
    raised = _raised(traceback) if traceback else None
    conditions, words = _words(message)
    whole = text if stack in text else f"{text}\n{stack}"
    causes = _CAUSED.findall(whole)
    root = _words(causes[-1])[1] if causes else ""
    return Complaint(whole, conditions, words, root, raised, _call_site(text))


def _words(message: str) -> tuple[tuple[str, ...], str]:
    """Peel off what was wrapped around the innermost message."""
    conditions: list[str] = []
    rest = message.strip()
    while True:
        before = rest
        if found := _CONDITION.match(rest):
            conditions.append(found[1])
            rest = rest[found.end() :]
        for wrapping in _WRAPPING:
            rest = wrapping.sub("", rest, count=1)
        if rest == before:
            break
    for end in (_END.search(rest), _PLAN.search(rest)):
        if end is not None:
            rest = rest[: end.start()]
    return tuple(conditions), _STATE.sub("", rest).strip().rstrip(":;").strip()


def _raised(traceback: str) -> Raised | None:
    # Text may hold the same traceback once more, in Java's own; errors that were chained stand before the first end.
    if end := _END.search(traceback):
        traceback = traceback[: end.start()]
    last = traceback.rpartition(_HEADER)[2]
    below = last.splitlines()
    at = next((at for at, each in enumerate(below) if each and not each.startswith(" ")), None)
    if at is None:
        return None
    told = _RAISED.match(_STATE.sub("", "\n".join(below[at:])).strip())
    if told is None:
        return None
    return Raised(told["kind"], (told["message"] or "").strip(), own(lines(last)))


def _call_site(text: str) -> Line | None:
    found = _CALL_SITE.search(text)
    return own([Line(found["file"], int(found["number"]))]) if found else None
