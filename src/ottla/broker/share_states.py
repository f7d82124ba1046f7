"""The share coordinators on this broker: machines over `__share_group_state`, and the requests that reach them.

H1  A request names many share partitions; each goes to the machine of its own, and the answer leaves once all have.
H2  Whoever asks from within this broker is patient: the topic is made for it, and a machine that still reads its log is
    asked again.
H3  What snapshots have made redundant is cut off the log, and only while nothing in it waits to be durable.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.coordinators import Coordinators
from ottla.broker.internal_topics import SHARE_STATE, make, partitions
from ottla.broker.timing import Timing
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.keyed import KeyedRecord
from ottla.share.key import ShareKey, state_partition
from ottla.share.state import ShareState, Written
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from ottla.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from ottla.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from ottla.wire.records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

_KINDS = {0: (ShareSnapshotKey, ShareSnapshotValue), 1: (ShareUpdateKey, ShareUpdateValue)}
_PRUNE_S = 300.0
_RETRY_S = 0.1
_TRIES = 6
_PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class HostedShareState(ShareState):
    """The machine, as a host of coordinators runs it. Its own log knows no transactions."""

    __slots__ = ("index",)

    index: int

    def lead(self, now: int) -> Decision[None]:
        """Begin to look after what the log holds."""
        self.loaded(now)
        return Decision(None)

    def tidy(self) -> Decision[bool]:
        """Forget the share partitions of topics that are no more."""
        return self.forget_gone()

    def apply_pending(self, producer_id: int, offset: int, record: KeyedRecord) -> None:
        """Take in a record as any other."""
        self.apply(offset, record)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Nothing ends here."""


# What a machine is asked about one share partition: (machine, group id, topic id, the wish, now).
Ask = Callable[[ShareState, str, bytes, Any, int], Decision[Any]]


class _Kind(NamedTuple):
    """A request about share partitions: its answer, the answer's parts, and the command."""

    response: Callable[..., Message]
    result: Callable[..., Any]
    part: Callable[..., Any]
    ask: Ask


_ASKED: dict[type[Message], _Kind] = {
    InitializeShareGroupStateRequest: _Kind(
        InitializeShareGroupStateResponse,
        InitializeShareGroupStateResponse.InitializeStateResult,
        InitializeShareGroupStateResponse.InitializeStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.initialize(group, topic, wish, now),
    ),
    ReadShareGroupStateRequest: _Kind(
        ReadShareGroupStateResponse,
        ReadShareGroupStateResponse.ReadStateResult,
        ReadShareGroupStateResponse.ReadStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.read(
            group, topic, wish.partition, wish.leader_epoch, now
        ),
    ),
    WriteShareGroupStateRequest: _Kind(
        WriteShareGroupStateResponse,
        WriteShareGroupStateResponse.WriteStateResult,
        WriteShareGroupStateResponse.WriteStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.write(group, topic, wish, now),
    ),
    DeleteShareGroupStateRequest: _Kind(
        DeleteShareGroupStateResponse,
        DeleteShareGroupStateResponse.DeleteStateResult,
        DeleteShareGroupStateResponse.DeleteStateResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.delete(group, topic, wish.partition),
    ),
    ReadShareGroupStateSummaryRequest: _Kind(
        ReadShareGroupStateSummaryResponse,
        ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
        ReadShareGroupStateSummaryResponse.ReadStateSummaryResult.PartitionResult,
        lambda machine, group, topic, wish, now: machine.summarize(group, topic, wish.partition),
    ),
}


class ShareStates:
    """The durable state of share partitions, as far as this broker leads the partitions that keep it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._pruning = False
        self.writes = Timing()
        self.machines: Coordinators[HostedShareState] = Coordinators(
            SHARE_STATE.name, _KINDS, broker.table, broker.clock, broker, self._make, _perform
        )

    def _make(self, index: int) -> HostedShareState:
        machine = HostedShareState(self._count, self._broker.settings)
        machine.index = index
        if not self._pruning:
            self._pruning = True
            self._broker.call_later(_PRUNE_S, self._prune)
        return machine

    def _count(self, topic_id: bytes) -> int | None:
        topic = self._broker.image.topics.by_id.get(topic_id)
        return None if topic is None else len(topic.partitions)

    def index(self, key: ShareKey) -> int:
        """Return the partition of `__share_group_state` that keeps a share partition."""
        return state_partition(key, partitions(self._broker, SHARE_STATE))

    def ask(self, request: Any, done: Callable[[Any], None]) -> None:
        """Serve one of the five requests about state; `done` gets the response."""
        self._ask(request, done, 1)

    def ask_patiently(self, request: Any, done: Callable[[Any], None]) -> None:
        """The same for this broker itself (H2)."""
        if request.topics:
            make(self._broker, SHARE_STATE, lambda _: self._ask(request, done, _TRIES))
        else:
            self._ask(request, done, _TRIES)

    def topics_deleted(self, topic_ids: list[bytes]) -> None:
        """Forget the share partitions of topics that are no more."""
        self.machines.tell_all(lambda machine, now: machine.topics_deleted(topic_ids))

    def _ask(self, request: Any, done: Callable[[Any], None], tries: int) -> None:
        kind = _ASKED[type(request)]
        topics = request.topics if request.group_id else []
        found: dict[tuple[int, int], Any] = {}
        left = 1 + sum(len(topic.partitions) for topic in topics)

        def one_less() -> None:
            nonlocal left
            left -= 1
            if not left:
                results = [
                    kind.result(
                        topic_id=topic.topic_id,
                        partitions=[found[number, at] for at in range(len(topic.partitions))],
                    )
                    for number, topic in enumerate(topics)
                ]
                done(kind.response(results=results))

        def answered(number: int, at: int) -> Callable[[Any], None]:
            def take(part: Any) -> None:
                found[number, at] = part
                one_less()

            return take

        for number, topic in enumerate(topics):
            for at, wish in enumerate(topic.partitions):
                key = ShareKey(request.group_id, topic.topic_id, wish.partition)
                self._one(kind, key, wish, answered(number, at), tries)
        one_less()

    def _one(self, kind: _Kind, key: ShareKey, wish: Any, done: Callable[[Any], None], tries: int) -> None:
        began_s = self._broker.clock.monotonic()

        def decided(outcome: Any) -> None:
            if not isinstance(outcome, BrokerError):
                if isinstance(outcome, Written):
                    self.writes.took(self._broker.clock.monotonic() - began_s)
                done(outcome)
            elif tries > 1 and outcome.code in _PASSING:
                wait_s = _RETRY_S * 2 ** (_TRIES - tries)
                self._broker.call_later(wait_s, lambda: self._one(kind, key, wish, done, tries - 1))
            else:
                done(
                    kind.part(partition=key.partition, error_code=outcome.code, error_message=outcome.message)
                )

        self.machines.submit(
            self.index(key),
            lambda machine, now: kind.ask(machine, key.group_id, key.topic_id, wish, now),
            decided,
        )

    def _prune(self) -> None:
        self._broker.call_later(_PRUNE_S, self._prune)
        for machine in self.machines.machines:
            offset = machine.redundant_offset
            try:
                partition = self._broker.table.by_name(SHARE_STATE.name, machine.index)
            except BrokerError:
                continue
            log = partition.log
            if offset is None or partition.error is not None or partition.high_watermark != log.end_offset:
                continue
            try:
                log.raise_start_offset(min(offset, log.end_offset))
            except OSError as error:
                log.storage_error(error)


def _perform(effect: Effect) -> None:
    raise AssertionError(f"the machine wants nothing done: {effect}")
