"""The share coordinators on this broker: machines over `__share_group_state`, and the requests that reach them.

H1  A request names many share partitions; each goes to the machine of its own, and the answer leaves once all have.
H2  Whoever asks from within this broker is patient, and asks whichever broker keeps the state (`share_persister.py`).
H3  What snapshots have made redundant is cut off the log, and only while nothing in it waits to be durable.
"""

from collections.abc import Callable
from typing import Any

from ottla.broker.broker import Broker
from ottla.broker.coordinator_seat import Around, Kept
from ottla.broker.coordinators import Coordinators
from ottla.broker.internal_topics import SHARE_STATE, partitions
from ottla.broker.share_persister import Persister
from ottla.broker.share_question import ASKED, ask_each
from ottla.broker.timing import Timing
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import nobody
from ottla.replicated.keyed import KeyedRecord
from ottla.replicated.steps import Steps
from ottla.share.key import ShareKey, state_partition
from ottla.share.state import ShareState, Written
from ottla.wire.errors import BrokerError
from ottla.wire.message import Message
from ottla.wire.records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

_KINDS = {0: (ShareSnapshotKey, ShareSnapshotValue), 1: (ShareUpdateKey, ShareUpdateValue)}
_PRUNE_S = 300.0


class HostedShareState(ShareState):
    """The machine, as a host of coordinators runs it. Its own log knows no transactions."""

    __slots__ = ("index",)

    index: int

    def clock_jumped(self, by_ms: int) -> None:
        """Go on: nothing but the rhythm of snapshots depends on it."""

    def lead(self, now: int) -> Decision[None]:
        """Begin to look after what the log holds."""
        self.loaded(now)
        return Decision(None)

    def tidy(self) -> Steps:
        """Forget the share partitions of topics that are no more."""
        return self.forget_gone()

    def apply_pending(self, producer_id: int, offset: int, record: KeyedRecord) -> None:
        """Take in a record as any other."""
        self.apply(offset, record)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Nothing ends here."""


class ShareStates:
    """The durable state of share partitions, as far as this broker leads the partitions that keep it."""

    def __init__(self, broker: Broker, report: Callable[[str], object] = nobody) -> None:
        self._broker = broker
        self._pruning = False
        self._persister = Persister(broker, self)
        self.writes = Timing()
        kept = Kept(
            SHARE_STATE.name,
            _KINDS,
            self._make,
            _name_of,
            lambda: int(broker.settings["share.coordinator.write.timeout.ms"]),
        )
        around = Around(broker.table, broker.clock, broker, _perform, report)
        self.machines: Coordinators[HostedShareState] = Coordinators(kept, around)

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
        ask_each(request, lambda key, wish, answered: self.one(type(request), key, wish, answered), done)

    def ask_patiently(self, request: Any, done: Callable[[Any], None]) -> None:
        """The same for this broker itself, of whoever keeps the state (H2)."""
        self._persister.ask(request, done)

    def topics_deleted(self, topic_ids: list[bytes]) -> None:
        """Forget the share partitions of topics that are no more."""
        gone = frozenset(topic_ids)
        self.machines.tell_all(lambda machine: machine.topics_deleted(gone))

    def one(self, asked: type[Message], key: ShareKey, wish: Any, done: Callable[[Any], None]) -> None:
        """Ask the machine of one share partition, if it is here; `done` gets its part of a response."""
        kind, began_s = ASKED[asked], self._broker.clock.monotonic()

        def decided(outcome: Any) -> None:
            if isinstance(outcome, BrokerError):
                done(
                    kind.part(partition=key.partition, error_code=outcome.code, error_message=outcome.message)
                )
                return
            if isinstance(outcome, Written):
                self.writes.took(self._broker.clock.monotonic() - began_s)
            done(outcome)

        self.machines.submit(
            self.index(key),
            lambda machine, now: kind.ask(machine, key.group_id, key.topic_id, wish, now),
            decided,
            (key,),
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


def _name_of(record: KeyedRecord) -> ShareKey:
    key = record.key
    assert isinstance(key, ShareSnapshotKey | ShareUpdateKey)
    return ShareKey(key.group_id, key.topic_id, key.partition)
