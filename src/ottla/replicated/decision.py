"""What a machine wants, and what a machine is.

M1  `apply` is the only place where a machine's state changes; what it does depends on the record and the state alone.
M2  Time enters through `expire`, and through the `now` that comes with a command; no clock is read.
M3  Nothing in `reply` or `after` leaves the host before `records` are committed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Reply = TypeVar("Reply")
Reply_co = TypeVar("Reply_co", covariant=True)
Record = TypeVar("Record")
Record_contra = TypeVar("Record_contra", contravariant=True)
Millis = int


class Effect:
    """Something to be done outside the machine once its records are committed; machines subclass it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    """What a machine wants. Nothing in `reply` or `after` leaves until `records` are committed.

    With `transactional`, a producer's id and epoch, the records are part of that producer's open transaction.
    `is_refusal` says that a reply without records refuses the whole command, and need not wait for anything.
    With `any_length` the log's limit on the length of a batch does not hold: it is for what somebody asks for, and not
    for what ends or removes what was let in before, which would have to stay for ever.
    """

    reply: Reply
    records: tuple[object, ...] = ()
    after: tuple[Effect, ...] = ()
    transactional: tuple[int, int] | None = None
    is_refusal: bool = False
    any_length: bool = False


@dataclass(frozen=True, slots=True)
class Together(Decision[None]):
    """Several decisions that do not look at each other's records; each is written alone if all of them cannot be."""

    parts: tuple[Decision[None], ...] = ()


def together(decisions: Sequence[Decision[None]]) -> Decision[None]:
    """Make one decision of several, none of which looks at the records of another."""
    if len(decisions) == 1:
        return decisions[0]
    return Together(
        None,
        tuple([record for each in decisions for record in each.records]),
        tuple([effect for each in decisions for effect in each.after]),
        any_length=all(each.any_length for each in decisions),
        parts=tuple(decisions),
    )


class Machine(Protocol[Record_contra]):
    """State that is a fold of records, and that decides what to record next."""

    @property
    def deadline(self) -> Millis | None:
        """When `expire` is next worth calling; None for never."""
        ...

    def apply(self, offset: int, record: Record_contra) -> None:
        """Take one record in; the only place where state changes."""
        ...

    def expire(self, now: Millis) -> Decision[None]:
        """Say what the passing of time asks for."""
        ...
