"""A Produce that is answered once its records are as safe as it asks for: durable here, or at all replicas in sync."""

from typing import Any

from ottla.broker.api import Pending
from ottla.broker.broker import Timers
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.produce import ProduceResponse

Part = ProduceResponse.TopicProduceResponse.PartitionProduceResponse

# Partitions, the offset each has to be durable to, and what to say of it.
Waits = list[tuple[Partition, int, Part]]

ALL = -1


class Durable:
    """Waits until all partitions of a produce are durable, each to its own offset.

    Where followers have a say it waits no longer than the client does: `limit`, and what calls back then.
    """

    __slots__ = ("_left", "_open", "_response", "_timer", "pending")

    def __init__(
        self,
        response: ProduceResponse,
        waits: Waits,
        acks: int,
        pending: Pending | None = None,
        limit: tuple[Timers, int] | None = None,
    ) -> None:
        self.pending = pending or Pending()
        self._response = response
        self._left = len(waits)
        self._timer: Any = None
        self._open: list[Part] = []
        if limit is not None and acks == ALL and any(each[0].leadership is not None for each in waits):
            timers, timeout_ms = limit
            self._open = [part for _, _, part in waits]
            self._timer = timers.call_later(max(timeout_ms, 0) / 1000, self._give_up)
        for partition, end_offset, part in waits:
            self._wait(partition, end_offset, part, acks)

    def _wait(self, partition: Partition, end_offset: int, part: Part, acks: int) -> None:
        def settled(error: BrokerError | None) -> None:
            if not self._left:
                return  # it was given up before
            if error is None and acks == ALL and _are_too_few(partition):
                error = BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            if error is not None:
                _refuse(part, error)
            if part in self._open:
                self._open.remove(part)
            self._left -= 1
            if not self._left:
                self._answer()

        if acks == ALL:
            partition.when_durable(end_offset, settled)
        else:
            partition.when_stored(end_offset, settled)

    def _give_up(self) -> None:
        """The client has waited long enough; the records may be committed yet."""
        if self._left:
            self._left = 0
            for part in self._open:
                _refuse(part, BrokerError(ErrorCode.REQUEST_TIMED_OUT))
            self._answer()

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.pending.resolve(self._response)


def _are_too_few(partition: Partition) -> bool:
    leadership = partition.leadership
    return leadership is not None and len(leadership.counted) < leadership.min_isr_in_force


def _refuse(part: Part, error: BrokerError) -> None:
    part.error_code = error.code
    part.error_message = error.message
    part.base_offset = -1
