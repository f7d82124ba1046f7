"""Share groups on this broker: their sessions, their share partitions, and what their coordinators want done.

C1  What a group asks of the share coordinators is asked for it, and the answer given back to the group.
C2  A session ends with its connection; what the member held is offered to others. A group without sessions keeps
    nothing in memory here.
C3  A share group is deleted after the state of its share partitions.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.broker import Broker
from ottla.broker.share_letters import DeadLetters
from ottla.broker.share_partitions import SharePartitions
from ottla.broker.share_states import ShareStates
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.groups.share.effects import DeleteState, InitializeState
from ottla.metadata.feature import SHARE_VERSION
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import nobody
from ottla.share.key import ShareKey
from ottla.share.session import SessionKey, ShareSession, ShareSessions
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.delete_groups import DeleteGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.share_fetching import ShareFetching

Deleted = DeleteGroupsResponse.DeletableGroupResult

_MEMBER_ID_LENGTH_MAX = 36


class ShareCoordination:
    """All that this broker does for share groups."""

    def __init__(self, broker: Broker, report: Callable[[str], object] = nobody) -> None:
        self._broker = broker
        self.states = ShareStates(broker, report)
        self.letters = DeadLetters(broker, report)
        self.partitions = SharePartitions(broker, self.states, self.letters)
        self.sessions = ShareSessions(broker.settings["group.share.max.share.sessions"])
        self._parked: dict[int, set[ShareFetching]] = {}
        self._connections: set[int] = set()

    def check(self) -> None:
        """Raise UNSUPPORTED_VERSION unless the cluster has agreed to use share groups."""
        if self._broker.image.features.all().get(SHARE_VERSION, 0) < 1:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)

    def member(self, group_id: str | None, member_id: str | None) -> SessionKey:
        """Return who asks; INVALID_REQUEST when that is nobody."""
        self.check()
        if group_id is None:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
        check_member_id(member_id)
        assert member_id is not None
        return SessionKey(group_id, member_id)

    # Sessions

    def connection_id(self, connection: Connection) -> int:
        """Return the number of a connection, and see to it that its end is noticed."""
        number = id(connection)
        if number not in self._connections:
            self._connections.add(number)
            connection.on_close.append(partial(self._closed, number))
        return number

    def _closed(self, number: int) -> None:
        self._connections.discard(number)
        for fetching in tuple(self._parked.get(number, ())):
            fetching.cancel()
        for session in self.sessions.disconnected(number):
            self._release(session)

    def close(self, key: SessionKey) -> None:
        """End a session, and offer to others what the member held."""
        session = self.sessions.find(key)
        if session is not None:
            self.sessions.close(key)
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        group_id, member_id = session.key
        for topic_id, partition in session.partitions:
            self.partitions.release(ShareKey(group_id, topic_id, partition), member_id)
        if not self.sessions.reads(group_id):
            self.partitions.drop_group(group_id)

    def parked(self, fetching: "ShareFetching") -> None:
        """Remember who waits on a connection."""
        self._parked.setdefault(fetching.connection_id, set()).add(fetching)

    def unparked(self, fetching: "ShareFetching") -> None:
        """Forget it."""
        waiting = self._parked.get(fetching.connection_id)
        if waiting is not None:
            waiting.discard(fetching)
            if not waiting:
                del self._parked[fetching.connection_id]

    # Groups

    def perform(self, effect: Effect) -> None:
        """Do what a group wants of the share coordinators, and tell it what became of that."""
        if isinstance(effect, InitializeState):
            token, group_id = effect.token, effect.request.group_id
            self.states.ask_patiently(
                effect.request,
                lambda response: self._tell(
                    group_id,
                    token,
                    lambda groups, now: groups.share.state_initialized(group_id, response, token, now),
                ),
            )
        else:
            assert isinstance(effect, DeleteState), effect
            number, name = effect.token, effect.request.group_id
            self.states.ask_patiently(
                effect.request,
                lambda response: self._tell(
                    name, number, lambda groups, now: groups.share.state_deleted(name, response, number)
                ),
            )

    def _tell(
        self, group_id: str, token: int | None, decide: Callable[[Groups, int], Decision[Any]]
    ) -> None:
        """Tell a group what became of its wish; should it not take that in, the client of the token hears why."""
        coordination = self._broker.coordination

        def done(outcome: Any) -> None:
            if isinstance(outcome, BrokerError) and token is not None:
                coordination.refuse(token, outcome)

        coordination.groups.submit(coordination.index(group_id), decide, done, (group_id,))

    def delete_group(self, group_id: str, done: Callable[[Deleted], None]) -> None:
        """Delete a group of whatever kind; of a share group the state goes first (C3)."""
        coordination = self._broker.coordination
        index = coordination.index(group_id)

        def refuse(error: BrokerError) -> None:
            done(Deleted(group_id=group_id, error_code=error.code))

        def gone(outcome: list[Deleted] | BrokerError) -> None:
            if isinstance(outcome, BrokerError):
                refuse(outcome)
            elif not outcome:
                self._broker.call_soon(delete)  # there are more offsets than one step removes
            else:
                self.letters.forget(group_id)
                done(outcome[0])

        def delete() -> None:
            coordination.groups.submit(
                index, lambda groups, now: groups.listing.delete([group_id]), gone, (group_id,)
            )

        def state_gone(response: Any) -> None:
            parts = [part for result in response.results for part in result.partitions if part.error_code]
            if parts:
                refuse(BrokerError(ErrorCode(parts[0].error_code)))
            else:
                delete()

        def begun(outcome: Any) -> None:
            if isinstance(outcome, BrokerError) and outcome.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                refuse(outcome)
            elif outcome is None or isinstance(outcome, BrokerError):
                delete()  # There is no state, or it is no share group.
            else:
                self.states.ask_patiently(outcome, state_gone)

        coordination.groups.submit(
            index, lambda groups, now: groups.share.delete_state(group_id), begun, (group_id,)
        )

    def topics_deleted(self, topic_ids: list[bytes]) -> None:
        """Forget the state of topics that are no more."""
        self.states.topics_deleted(topic_ids)
        self.partitions.traffic.forget(topic_ids)


def check_member_id(member_id: str | None) -> None:
    """Raise INVALID_REQUEST unless a member may be called this."""
    if not member_id or len(member_id) > _MEMBER_ID_LENGTH_MAX:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
