"""An episode: an operation from its beginning to its end, if that was seen."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ottla.sim.history.op import Deed, Kind, Op, Poll, Seen, Send, Step


class Malformed(Exception):
    """The lines are not a history."""


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """What a process did. `outcome` is `ok`, `fail`, or `info` where nobody knows."""

    process: int
    deed: Deed
    outcome: Kind
    steps: tuple[Step, ...]
    keys: tuple[str, ...]
    index: int  # of the line with which it began

    @property
    def sends(self) -> Iterator[Send]:
        """What it wrote, in order."""
        return (step for step in self.steps if isinstance(step, Send))

    @property
    def seen(self) -> Iterator[Seen]:
        """What it read, in order."""
        return (each for step in self.steps if isinstance(step, Poll) for each in step.seen)

    def __str__(self) -> str:
        return f"{self.deed} {self.outcome} of process {self.process} (line {self.index})"


def episodes(ops: Iterable[Op]) -> list[Episode]:
    """Join beginnings and ends; in the order of the beginnings."""
    found: list[tuple[Op, Op | None]] = []
    under_way: dict[int, int] = {}
    for op in ops:
        if op.kind == "invoke":
            if op.process in under_way:
                raise Malformed(f"line {op.index}: process {op.process} begins while it is at work")
            under_way[op.process] = len(found)
            found.append((op, None))
            continue
        place = under_way.pop(op.process, None)
        if place is None or found[place][0].deed != op.deed:
            raise Malformed(f"line {op.index}: process {op.process} ends what it has not begun")
        found[place] = (found[place][0], op)
    return [_join(began, ended) for began, ended in found]


def _join(began: Op, ended: Op | None) -> Episode:
    if ended is None:
        return Episode(began.process, began.deed, "info", began.steps, began.keys, began.index)
    # What was not reached has no result, but may have been written all the same.
    steps = ended.steps + began.steps[len(ended.steps) :]
    return Episode(began.process, began.deed, ended.kind, steps, began.keys, began.index)
