"""What a member says of the records it holds: the kinds of acknowledgement, and which lists of them make sense."""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple, Protocol

from ottla.share.span import Delivery
from ottla.wire.errors import BrokerError, ErrorCode


class Verdict(IntEnum):
    """The kinds of acknowledgement, by their number on the wire; a gap is an offset at which there was no record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


# What becomes of a record; a renewal leaves it where it is, and one that is rejected is given up.
FATES = {
    Verdict.GAP: Delivery.ARCHIVED,
    Verdict.ACCEPT: Delivery.ACKNOWLEDGED,
    Verdict.RELEASE: Delivery.AVAILABLE,
}


class AcknowledgementBatch(Protocol):
    """A batch of acknowledgements, as ShareFetch and ShareAcknowledge both carry it."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Run(NamedTuple):
    """Neighbouring offsets with one verdict."""

    start_offset: int
    end_offset: int
    verdict: Verdict


def check(batches: Iterable[AcknowledgementBatch], *, may_renew: bool) -> None:
    """Raise BrokerError unless the batches are in order and say of every offset what became of it.

    A renewal needs a request of version 2 or later that says that it has some.
    """
    previous = -1
    for batch in batches:
        count = len(batch.acknowledge_types)
        offsets = batch.last_offset - batch.first_offset + 1
        if offsets < 1 or batch.first_offset < previous or count not in {1, offsets}:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, "the acknowledgements are not in order, or not complete"
            )
        most = Verdict.RENEW if may_renew else Verdict.REJECT
        if not all(Verdict.GAP <= kind <= most for kind in batch.acknowledge_types):
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, "an acknowledgement is of no kind that is allowed here"
            )
        previous = batch.last_offset


def runs(batch: AcknowledgementBatch, start_offset: int) -> Iterator[Run]:
    """Return the verdicts at and above `start_offset`, neighbours with the same one together."""
    kinds: Sequence[int] = batch.acknowledge_types
    try:
        verdicts = [Verdict(kind) for kind in kinds]
    except ValueError:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"unknown kinds of acknowledgement: {kinds}") from None
    end_offset = batch.last_offset + 1
    if len(verdicts) == 1:
        yield Run(max(start_offset, batch.first_offset), end_offset, verdicts[0])
        return
    offset = batch.first_offset
    for verdict, group in groupby(verdicts):
        low, offset = offset, offset + sum(1 for _ in group)
        if offset > start_offset:
            yield Run(max(low, start_offset), min(offset, end_offset), verdict)
