"""A function that a user gave to an operator.

Its result has a type, which is known before anything runs. Where the function could be read as an expression over the
record, `expression` is that, and Spark computes it without calling Python; where not, it is None, and `call` is called.

What a function uses from outside it has at the time it is called, in Python: a variable of a loop has the loop's last
value by then. So a function is read when it is given, to know its type, and once more when the plan is made.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ottla.streams.expression.tree import Expression
from ottla.streams.types.type import Type


class Reading(NamedTuple):
    """What has come of reading a function: an expression, or why there is none."""

    expression: Expression | None
    called_because: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """What to call, with what, and where it stands.

    `parameters` are the names of what it is called with, in order, each one of the names that its operator offers
    (a mapper is offered `key` and `value`, and a function of one argument gets the value alone).
    """

    call: Callable[..., Any]
    parameters: tuple[str, ...]
    result: Type
    place: str  # file:line, as errors name it
    expression: Expression | None = None
    called_because: str | None = None  # None as well where nobody has tried to read it
    read: Callable[[], Reading] | None = None

    def read_again(self) -> "Function":
        """Return the function as it reads now; the same one if that is what it was."""
        if self.read is None:
            return self
        found = self.read()
        if found == (self.expression, self.called_because):
            return self
        return replace(self, expression=found.expression, called_because=found.called_because)

    def bound(self, offered: tuple[str, ...]) -> Callable[..., Any]:
        """Return a function of everything in `offered`, in that order, that passes on what this one wants."""
        if self.parameters == offered:
            return self.call
        call = self.call
        if len(self.parameters) == 1:
            at = offered.index(self.parameters[0])
            return lambda *given: call(given[at])
        wanted = tuple(offered.index(each) for each in self.parameters)
        return lambda *given: call(*[given[at] for at in wanted])
