"""The coordinators on this broker, and how a request reaches its own.

O1  Requests about one name go to the machine of one partition; those about many are split, and answered together.
O2  An answer that comes later, as JoinGroup's does, is found by the token that went with the request.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, TypeVar

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.broker.coordinator_seat import Around, Kept
from ottla.broker.coordinators import Coordinators, partition_of
from ottla.broker.expression import match
from ottla.broker.gathering import Gathering
from ottla.broker.group_topics import GroupTopics
from ottla.broker.internal_topics import OFFSETS, partitions
from ottla.broker.mentions import mentions
from ottla.broker.streams_topics import StreamsTopics
from ottla.channel.connection import Connection
from ottla.groups.classic.records import KINDS as CLASSIC_KINDS
from ottla.groups.consumer.records import KINDS as CONSUMER_KINDS
from ottla.groups.group import Kind
from ottla.groups.machine import Groups, group_of
from ottla.groups.offset_records import KINDS as OFFSET_KINDS
from ottla.groups.share.effects import DeleteState, InitializeState
from ottla.groups.share.records import KINDS as SHARE_KINDS
from ottla.groups.shelf import Shelf
from ottla.groups.streams.records import KINDS as STREAMS_KINDS
from ottla.groups.tally import Tally
from ottla.metadata.config import ConfigType
from ottla.metadata.feature import GROUP_VERSION, STREAMS_VERSION
from ottla.metadata.settings.group import effective_group, group_in_force
from ottla.metadata.topics import Topic
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import nobody
from ottla.replicated.keyed import Answer, Client
from ottla.replicated.steps import Steps
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message

R = TypeVar("R")

# What a cluster has to have agreed on before members may speak a protocol.
_FEATURES = {Kind.CONSUMER: GROUP_VERSION, Kind.STREAMS: STREAMS_VERSION}


class Coordination:
    """Groups and offsets, for the partitions of `__consumer_offsets` that this broker leads."""

    def __init__(
        self, broker: Broker, unique: Callable[[], bytes], report: Callable[[str], object] = nobody
    ) -> None:
        self._broker = broker
        self._unique = unique
        self._topics = GroupTopics(broker)
        self.tally = Tally()
        self._tokens = count(1)
        # Who waits for an answer that comes later, in which partition, and how it is refused.
        self._waiting: dict[int, tuple[Pending, int, Callable[[ErrorCode], Message]]] = {}
        # What groups with settings of their own go by, and what that was worked out from.
        self._own: dict[str, tuple[Mapping[str, str], Mapping[str, Any], Mapping[str, Any]]] = {}
        self._defaults_of: Mapping[str, Any] | None = None
        self._defaults: Mapping[str, Any] = {}
        self.streams_topics = StreamsTopics(broker)
        kept = Kept(
            OFFSETS.name,
            {**OFFSET_KINDS, **CLASSIC_KINDS, **CONSUMER_KINDS, **SHARE_KINDS, **STREAMS_KINDS},
            self._make_groups,
            lambda record: group_of(record.key),
            lambda: int(broker.settings["offsets.commit.timeout.ms"]),
            Codec(broker.settings["offsets.topic.compression.codec"]),
        )
        around = Around(
            broker.table,
            broker.clock,
            broker,
            self._perform,
            report,
            broker.connections.soon,
            self._late,
            self._left,
        )
        self.groups: Coordinators[Groups] = Coordinators(kept, around)

    def _make_groups(self, index: int) -> Groups:
        shelf = Shelf(self._topics, self._broker.settings, self.config, self._unique, tally=self.tally)
        return Groups(shelf, match)

    def check(self, kind: Kind) -> None:
        """Raise UNSUPPORTED_VERSION unless this broker speaks a protocol, and the cluster has agreed to use it."""
        broker = self._broker
        spoken = broker.settings["group.coordinator.rebalance.protocols"]
        if kind.value not in spoken or broker.image.features.level(_FEATURES[kind]) < 1:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)

    def config(self, group_id: str, name: str) -> Any:
        """Return a setting of a group, or the broker's default for it."""
        broker = self._broker
        overrides = broker.image.configs.of(ConfigType.GROUP, group_id)
        if overrides:
            known = self._own.get(group_id)
            if known is None or known[0] is not overrides or known[1] is not broker.settings:
                known = overrides, broker.settings, group_in_force(broker.settings, overrides)
                self._own[group_id] = known
            return known[2][name]
        if self._own:
            self._own.pop(group_id, None)
        # Nearly every group sets nothing, and every heartbeat asks: the defaults are worked out once.
        if self._defaults_of is not broker.settings:
            self._defaults_of = broker.settings
            self._defaults = effective_group(broker.settings, {})
        return self._defaults[name]

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, InitializeState | DeleteState):
            self._broker.share.perform(effect)
            return
        assert isinstance(effect, Answer), effect
        waiting = self._waiting.pop(effect.token, None)
        if waiting is not None:
            waiting[0].resolve(effect.message)

    def _late(self, effect: Effect, error: BrokerError) -> None:
        """What an answer speaks of could not be committed in time: whoever waits for it is refused."""
        if isinstance(effect, Answer):
            self.refuse(effect.token, error)

    def refuse(self, token: int, error: BrokerError) -> None:
        """Answer whoever waits for the answer of a token that it will not come, and why."""
        waiting = self._waiting.pop(token, None)
        if waiting is not None:
            pending, _, refuse = waiting
            pending.resolve(refuse(error.code))

    def _left(self, index: int) -> None:
        """These groups are not coordinated here any more: whoever waits for an answer is sent on."""
        for token, (pending, where, refuse) in tuple(self._waiting.items()):
            if where == index:
                del self._waiting[token]
                pending.resolve(refuse(ErrorCode.NOT_COORDINATOR))

    # The way of a request

    def group(
        self,
        group_id: str,
        decide: Callable[[Groups, int], Decision[R]],
        finish: Callable[[R | BrokerError], Message],
    ) -> Pending:
        """Ask the coordinator of a group; `finish` turns its answer, or its refusal, into the response."""
        pending = Pending()
        self.groups.submit(
            self.index(group_id), decide, lambda outcome: pending.resolve(finish(outcome)), (group_id,)
        )
        return pending

    def commit(
        self,
        group_id: str,
        decide: Callable[[Groups, int], Decision[R]],
        finish: Callable[[R | BrokerError], Message],
    ) -> Pending:
        """As `group`, for offsets: those that arrive together are written together, whichever groups commit them."""
        pending = Pending()
        self.groups.gather(
            self.index(group_id), decide, lambda outcome: pending.resolve(finish(outcome)), (group_id,)
        )
        return pending

    def group_later(
        self,
        group_id: str,
        decide: Callable[[Groups, int, int], Decision[None]],
        refuse: Callable[[ErrorCode], Message],
    ) -> Pending:
        """Ask the coordinator of a group, which answers when it can; `decide` is given the token of the answer."""
        pending = Pending()
        token = next(self._tokens)
        index = self.index(group_id)
        self._waiting[token] = pending, index, refuse

        def done(outcome: BrokerError | None) -> None:
            if isinstance(outcome, BrokerError) and self._waiting.pop(token, None) is not None:
                pending.resolve(refuse(outcome.code))

        self.groups.submit(index, lambda groups, now: decide(groups, token, now), done, (group_id,))
        return pending

    def each_group(
        self,
        group_ids: Iterable[str],
        decide: Callable[[Groups, list[str], int], Decision[list[R]]],
        refuse: Callable[[str, ErrorCode], R],
        finish: Callable[[list[R]], Message],
    ) -> Pending:
        """Ask the coordinators of several groups (each twice at most), and answer with what all of them say."""
        split: dict[int, list[str]] = {}
        for group_id in mentions(group_ids, str):
            split.setdefault(self.index(group_id), []).append(group_id)
        gathering = Gathering(len(split), finish)
        for index, ids in split.items():
            self._ask(index, ids, decide, refuse, gathering)
        gathering.check()
        return gathering.pending

    def _ask(
        self,
        index: int,
        ids: list[str],
        decide: Callable[[Groups, list[str], int], Decision[list[R]]],
        refuse: Callable[[str, ErrorCode], R],
        gathering: Gathering,
    ) -> None:
        def done(outcome: list[R] | BrokerError) -> None:
            if isinstance(outcome, BrokerError):
                gathering.add([refuse(group_id, outcome.code) for group_id in ids])
            else:
                gathering.add(outcome)

        self.groups.submit(index, lambda groups, now: decide(groups, ids, now), done, ids)

    def every_partition(
        self,
        decide: Callable[[Groups, int], Decision[list[R]]],
        finish: Callable[[list[R], ErrorCode], Message],
    ) -> Pending:
        """Ask every coordinator of groups on this broker. The answer is a list of names, and waits for no records."""
        topic = self._broker.image.topics.by_name.get(OFFSETS.name)
        indexes = (
            []
            if topic is None
            else [index for index, state in topic.partitions.items() if state.leader == self._broker.node_id]
        )
        worst = ErrorCode.NONE

        def finished(found: list[R]) -> Message:
            return finish(found, worst)

        gathering = Gathering(len(indexes), finished)

        def done(outcome: list[R] | BrokerError) -> None:
            nonlocal worst
            if isinstance(outcome, BrokerError):
                # A partition that has another coordinator by now is listed there.
                if outcome.code is not ErrorCode.NOT_COORDINATOR:
                    worst = outcome.code
                outcome = []
            gathering.add(outcome)

        for index in indexes:
            self.groups.submit(index, decide, done, ())
        gathering.check()
        return gathering.pending

    def topics_deleted(self, topics: Iterable[Topic]) -> None:
        """Let every coordinator here forget topics that are no more."""
        deleted = {topic.name: topic.id for topic in topics}
        last: dict[Groups, int] = {}  # as it was at first, should it have to be tried again

        def begin(groups: Groups) -> Steps:
            return groups.forget_topics(deleted, last.setdefault(groups, groups.offsets.last_at))

        self.groups.tell_all(begin)

    def index(self, name: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to."""
        return partition_of(name, partitions(self._broker, OFFSETS))


def client_of(connection: Connection) -> Client:
    """Who asks, as coordinators write it down."""
    return Client(bytes(connection.session.client_id).decode(errors="replace"), f"/{connection.peer}")
