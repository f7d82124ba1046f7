"""Whose line it is: the line of the user's own program that a failure is about.

P1  A line is the user's own when it is neither Python's, nor Spark's (and what Spark is built on), nor ours, nor of any
    installed package.
P2  Of a chain of calls the innermost own line counts. Where a whole program was installed as a package, the innermost
    of a package counts.

Paths are judged by their words and not looked up: they may be those of another machine.
"""

import linecache
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_HERE = str(Path(__file__).parents[1]) + "/"
_OURS = re.compile(r"/ottla/(spark|streams|client|wire|channel|world)/")
_THEIRS = re.compile(
    r"/pyspark\.zip/|/(pyspark|py4j|pyarrow|pandas|numpy)/|\.(pyx|pxi)$|^<frozen |/python\d+\.zip/"
    r"|/lib/python3(\.\d+)?/(?!site-|dist-)"
)
_PACKAGES = re.compile(r"/(site|dist)-packages/")
_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<number>\d+)(?:, in (?P<function>.+))?$')


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a program."""

    file: str
    number: int
    function: str = ""
    source: str = ""

    def __str__(self) -> str:
        within = f", in {self.function}" if self.function else ""
        source = f"\n    {self.source}" if self.source else ""
        return f'  File "{self.file}", line {self.number}{within}{source}'


def lines(traceback: str) -> list[Line]:
    """Return the lines that a printed traceback is made of, the innermost last."""
    found: list[Line] = []
    text = traceback.splitlines()
    for at, each in enumerate(text):
        if frame := _FRAME.match(each):
            # The source follows, deeper than its frame, where Python could find it.
            below = text[at + 1] if at + 1 < len(text) else ""
            source = below.strip() if below.startswith("    ") and not _FRAME.match(below) else ""
            found.append(Line(frame["file"], int(frame["number"]), frame["function"] or "", source))
    return found


def own(chain: Iterable[Line]) -> Line | None:
    """Return the user's own line of a chain of calls whose innermost is last."""
    packaged: Line | None = None
    mine: Line | None = None
    for each in chain:
        path = each.file.replace("\\", "/")
        if path.startswith(_HERE) or _OURS.search(path) or _THEIRS.search(path):
            continue
        if _PACKAGES.search(path):
            packaged = each
        else:
            mine = each
    return mine or packaged


def calling(traceback: TracebackType | None = None) -> Line | None:
    """Return the user's own line that is being executed, or that a traceback leads through."""
    return own(_executed(traceback))


def _executed(traceback: TracebackType | None) -> Iterator[Line]:
    stack: list[Line] = []
    frame = sys._getframe(1) if traceback is None else traceback.tb_frame.f_back
    while frame is not None:
        stack.append(_line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    yield from reversed(stack)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        yield _line(code.co_filename, traceback.tb_lineno, code.co_name)
        traceback = traceback.tb_next


def _line(file: str, number: int, function: str) -> Line:
    function = "" if function == "<module>" else function
    return Line(file, number, function, linecache.getline(file, number).strip())
