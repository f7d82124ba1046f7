"""A change of a share partition's state on its way to the share coordinator."""

from typing import TYPE_CHECKING

from ottla.share.span import Delivery, Span
from ottla.wire.messages.write_share_group_state import WriteShareGroupStateRequest

if TYPE_CHECKING:
    from ottla.share.effects import DeadLetter

Written = WriteShareGroupStateRequest.WriteStateData.PartitionData


class Change:
    """What is being written, and who waits for it.

    `spans` get their next state once it is durable; without any, the change has taken effect before it was written.
    `letters` go then as well.
    """

    __slots__ = ("batches", "letters", "spans", "token")

    def __init__(self, token: int | None) -> None:
        self.token = token
        self.spans: list[Span] = []
        self.batches: list[Written.StateBatch] = []
        self.letters: list[DeadLetter] = []

    def note(self, span: Span, state: Delivery) -> None:
        """Write that a span has a state, or is to have it."""
        self.batches.append(
            Written.StateBatch(
                first_offset=span.start_offset,
                last_offset=span.end_offset - 1,
                delivery_state=state,
                delivery_count=span.count,
            )
        )
