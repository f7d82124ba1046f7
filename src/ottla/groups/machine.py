"""The machine of one partition of `__consumer_offsets`: groups of every protocol, and the offsets they commit.

G1  A name is of one kind of group at a time; commands of the classic protocol go to whichever kind the group is of.
G2  A record changes the state of the part it belongs to, and of no other, whether it is live or replayed.
G3  A timer whose records the journal refuses is not lost: it is due again a little later. Nor is one lost that was due
    together with one that breaks.
G4  In one step of time a group is dealt with once, so that every decision sees the records of the one before. What is
    said of changes that need no record does not depend on records of others: the journal may refuse those.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, Protocol

from ottla.groups.classic import records as classic_records
from ottla.groups.classic.groups import ClassicGroups
from ottla.groups.consumer import records as consumer_records
from ottla.groups.consumer.desk import Match, no_engine
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.group import Kind
from ottla.groups.listing import Listing
from ottla.groups.offset_records import KINDS as OFFSET_KINDS
from ottla.groups.offsets import Offsets
from ottla.groups.share import records as share_records
from ottla.groups.share.groups import ShareGroups
from ottla.groups.shelf import Shelf, TimerKey
from ottla.groups.streams import records as streams_records
from ottla.groups.streams.groups import StreamsGroups
from ottla.replicated.decision import Decision, Effect, together
from ottla.replicated.keyed import Client, KeyedRecord, Kinds, stored_bytes
from ottla.replicated.steps import STEP_BYTES, Steps
from ottla.wire.message import Message
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.records.consumer_group import ConsumerGroupMetadataKey
from ottla.wire.records.share_group import ShareGroupMetadataKey
from ottla.wire.records.streams_group import StreamsGroupMetadataKey

_AT_ONCE = 0
# The types of records with which a group of a kind begins another epoch.
_EPOCHS = {
    ConsumerGroupMetadataKey.api_key: Kind.CONSUMER,
    ShareGroupMetadataKey.api_key: Kind.SHARE,
    StreamsGroupMetadataKey.api_key: Kind.STREAMS,
}
# How soon what the journal refused is tried again, and how many records one step of time may come to, if they have no
# more than STEP_BYTES.
_RETRY_MS = 1_000
_RECORDS_MAX = 500


class KindOfGroups(Protocol):
    """All groups of one protocol."""

    def apply(self, record: KeyedRecord) -> None:
        """Take in one of its records."""
        ...

    def expire(self, key: TimerKey, now: int) -> Decision[None]:
        """Do what one of its timers is for."""
        ...


class Part(NamedTuple):
    """A kind of groups: what its timers are called, its types of records, and what sets its timers after a replay."""

    name: str
    kinds: Kinds
    groups: KindOfGroups
    lead: Callable[[int], object]


class Groups:
    """All groups and offsets of one partition.

    `listing` and `offsets` hold the commands that concern every kind; those of the classic protocol are here, and those
    of a single kind belong to `consumer`, `share` and `streams`. `match` is the engine for regular expressions.
    """

    __slots__ = (
        "_leads",
        "_parts",
        "_retried",
        "_routes",
        "_unsaid",
        "classic",
        "consumer",
        "kinds",
        "listing",
        "offsets",
        "share",
        "shelf",
        "streams",
    )

    def __init__(self, shelf: Shelf, match: Match = no_engine) -> None:
        self.shelf = shelf
        self.classic = ClassicGroups(shelf)
        self.consumer = ConsumerGroups(shelf, match)
        self.share = ShareGroups(shelf)
        self.streams = StreamsGroups(shelf)
        self.offsets = Offsets(shelf, self.classic)
        self.listing = Listing(shelf, self.offsets)
        parts = (
            Part("classic", classic_records.KINDS, self.classic, self.classic.lead),
            Part("consumer", consumer_records.KINDS, self.consumer, self.consumer.lead),
            Part("share", share_records.KINDS, self.share, self.share.loaded),
            Part("streams", streams_records.KINDS, self.streams, self.streams.lead),
        )
        self._parts = {part.name: part for part in parts}
        self._routes = {kind: part.groups for part in parts for kind in part.kinds}
        # The types of records this machine reads.
        self.kinds: Kinds = dict(OFFSET_KINDS) | {
            kind: pair for part in parts for kind, pair in part.kinds.items()
        }
        self._leads = False
        # Timers that are set off again unless a record is applied: by the identity of that record, which is kept.
        self._retried: dict[int, tuple[KeyedRecord, TimerKey]] = {}
        # What is to be said for changes that needed no record, while others of the same step did.
        self._unsaid: list[Effect] = []

    # Commands of the classic protocol

    def join(
        self, request: JoinGroupRequest, version: int, client: Client, token: int, now: int
    ) -> Decision[None]:
        """Serve JoinGroup, versions 0 to 9; answered by an `Answer(token, JoinGroupResponse)`."""
        # One that has no members becomes a classic group.
        if self._is_consumers(request.group_id) and self.shelf.groups[request.group_id].state != "Empty":
            return self.consumer.classic_join(request, version, client, token, now)
        return self.classic.join(request, version, client, token, now)

    def sync(self, request: SyncGroupRequest, version: int, token: int, now: int) -> Decision[None]:
        """Serve SyncGroup, versions 0 to 5; answered by an `Answer(token, SyncGroupResponse)`."""
        if self._is_consumers(request.group_id):
            return self.consumer.classic_sync(request, version, token, now)
        return self.classic.sync(request, version, token, now)

    def heartbeat(self, request: HeartbeatRequest, now: int) -> Decision[HeartbeatResponse]:
        """Serve Heartbeat, versions 0 to 4."""
        if self._is_consumers(request.group_id):
            return self.consumer.classic_heartbeat(request, now)
        return self.classic.heartbeat(request, now)

    def leave(self, request: LeaveGroupRequest, version: int, now: int) -> Decision[LeaveGroupResponse]:
        """Serve LeaveGroup, versions 0 to 5."""
        if self._is_consumers(request.group_id):
            return self.consumer.classic_leave(request, version, now)
        return self.classic.leave(request, version, now)

    def forget(self, token: int) -> None:
        """Nobody waits for this answer any more. A classic member keeps its seat, as one who is slow to come back."""
        self.share.forget(token)

    def forget_topics(self, deleted: Mapping[str, bytes], last_at: int | None = None) -> Steps:
        """Topics were deleted, given by name and id: their offsets go, and what share groups know of their state.

        Commits that name no topic id go unless they are later than `last_at`, the offset of the last that was taken in.
        """
        offsets = self.offsets.forget_topics(deleted, last_at)
        return chain(offsets, self.share.topics_deleted(frozenset(deleted.values())))

    # The log

    def apply(self, offset: int, record: KeyedRecord) -> None:
        """Take in one record."""
        if self._retried:
            retried = self._retried.pop(id(record), None)
            if retried is not None:
                self.shelf.timers.cancel(retried[1])
        kind = record.key.api_key
        if kind in OFFSET_KINDS:
            self.offsets.apply(offset, record)
            return
        assert kind in self._routes, f"a record of type {kind}"
        if self._leads and record.value is not None and kind in _EPOCHS:
            self.shelf.tally.rebalances[_EPOCHS[kind]] += 1
        self._routes[kind].apply(record)
        self.offsets.group_seen(group_of(record.key))

    def apply_pending(self, producer_id: int, offset: int, record: KeyedRecord) -> None:
        """Take in a record that is part of a producer's open transaction."""
        if record.key.api_key in OFFSET_KINDS:
            self.offsets.apply_pending(producer_id, offset, record)
        else:
            self.apply(offset, record)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """End a producer's transaction as its marker says."""
        self.offsets.end_transaction(producer_id, committed)

    def lead(self, now: int) -> Decision[None]:
        """Begin to lead, the log being read; no command may come before."""
        for part in self._parts.values():
            part.lead(now)
        self._leads = True
        return Decision(None)

    def tidy(self) -> Steps:
        """Forget what is left of topics that were deleted while nobody led."""
        return chain(self.offsets.forget_gone(), self.share.forget_gone())

    # Time

    @property
    def deadline(self) -> int | None:
        """When `expire` is next worth calling."""
        return _AT_ONCE if self._unsaid else self.shelf.timers.next_deadline

    def clock_jumped(self, by_ms: int) -> None:
        """Let sessions and rebalances last as long as they would have, though the wall clock was set."""
        self.shelf.timers.shift(by_ms)

    def expire(self, now: int) -> Decision[None]:
        """Do what is due."""
        if self._unsaid:
            unsaid, self._unsaid = self._unsaid, []
            return Decision(None, (), tuple(unsaid))
        recorded = self._recorded(now)
        if not recorded:
            unsaid, self._unsaid = self._unsaid, []
            return Decision(None, (), tuple(unsaid))
        return together(recorded)

    def _recorded(self, now: int) -> list[Decision[None]]:
        """Return what is due and needs records, as much of it as a step may write; the rest is due at once."""
        timers = self.shelf.timers
        recorded: list[Decision[None]] = []
        self._retried = {}
        busy: set[str] = set()
        count = size_bytes = 0
        due = iter(timers.due(now))
        for key in due:
            if key[1] in busy or count >= _RECORDS_MAX or size_bytes >= STEP_BYTES:
                timers.set(key, now)
                continue
            try:
                decision = self._expire(key, now)
            except Exception:
                # Others come first now, and then this one alone breaks.
                timers.set(key, now if recorded else now + _RETRY_MS)
                for other in due:
                    timers.set(other, now)
                if recorded:
                    break
                raise
            if not decision.records:
                self._unsaid += decision.after
                continue
            recorded.append(decision)
            busy.add(key[1])
            count += len(decision.records)
            size_bytes += stored_bytes(decision.records)
            if key not in timers:
                timers.set(key, now + _RETRY_MS)
                first = decision.records[0]
                assert isinstance(first, KeyedRecord)
                self._retried[id(first)] = first, key
        return recorded

    def _expire(self, key: TimerKey, now: int) -> Decision[None]:
        if key[0] == "offsets":
            decision = self.offsets.expire(key, now)
        else:
            decision = self._parts[key[0]].groups.expire(key, now)
        # Whatever time asks for has been let in, so it is written however long it is.
        return replace(decision, any_length=True) if decision.records else decision

    def _is_consumers(self, group_id: str) -> bool:
        group = self.shelf.groups.get(group_id)
        return group is not None and group.kind is Kind.CONSUMER


def group_of(key: Message) -> str:
    """Return the group that a record is of; classic ones call it by another name."""
    group_id = getattr(key, "group_id", None)
    if group_id is None:
        group_id = getattr(key, "group")  # noqa: B009
    assert isinstance(group_id, str)
    return group_id
