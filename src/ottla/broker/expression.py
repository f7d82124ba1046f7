"""Regular expressions of clients, matched in time linear in what they are matched with, whatever they are.

E1  An expression is compiled in a few milliseconds, or refused: its length, its operators, its Unicode classes and the
    memory of its program are limited, far above what names of topics need. A name of a class is short and its program
    is long, and RE2 takes time by the square of the operators.
E2  A request that names one has used up its connection's turn (law A3 of `connections.py`).
E3  What was compiled lately is kept, whoever asked for it, so that what was checked is not compiled again to be used.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from ottla.channel.connections import TURN_COST_MAX

COST = TURN_COST_MAX + 1  # as an answer of so many bytes
LENGTH_MAX = 16 << 10
_OPERATORS_MAX = 1_000
_CLASSES_MAX = 8
_MEMORY_MAX = 512 << 10
_KEPT = 64  # each of up to _MEMORY_MAX

_OPERATOR = re.compile(r"[*+?{]")
_CLASS = re.compile(r"\\[pP]")


class Expression:
    """A test of whole names, and how many steps it may take for each character."""

    __slots__ = ("_matches", "size")

    def __init__(self, matches: Callable[[str], object], size: int) -> None:
        self._matches = matches
        self.size = size

    def __call__(self, name: str) -> bool:
        """Say whether a name matches."""
        return self._matches(name) is not None


def match(pattern: str) -> Expression:
    """Return a test for names that match a pattern wholly; ValueError says what is wrong with the pattern."""
    for what, count, limit in (
        ("characters", len(pattern), LENGTH_MAX),
        ("operators", len(_OPERATOR.findall(pattern)), _OPERATORS_MAX),
        ("Unicode classes", len(_CLASS.findall(pattern)), _CLASSES_MAX),
    ):
        if count > limit:
            raise ValueError(f"it has {count} {what}, the limit is {limit}")
    return _compiled(pattern)


@lru_cache(maxsize=_KEPT)
def _compiled(pattern: str) -> Expression:
    """RE2 is loaded with the first pattern: a broker whose clients name their topics never needs it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_MAX
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(reason.decode() if isinstance(reason, bytes) else str(reason)) from None
    return Expression(compiled.fullmatch, compiled.programsize)
