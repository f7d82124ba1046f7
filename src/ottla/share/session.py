"""Share sessions: which partitions a member reads from this broker, so that it need not name them every time.

E1  A session is known by group and member. Its epoch grows by one with every request; a request out of turn is refused.
E2  There are at most `sessions_max` at a time; none is ever pushed out by another.
E3  A session ends with the last epoch, or with the connection that it was opened on, of which there may be several on
    one; then the caller releases what the member holds in the partitions of what `close` and `disconnected` return.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.wire.errors import BrokerError, ErrorCode

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 0x7FFFFFFF

SharedPartition = tuple[bytes, int]  # topic id, partition


class SessionKey(NamedTuple):
    """What a session is known by."""

    group_id: str
    member_id: str


class ShareSession:
    """One member's partitions, in the order in which they are served: those that had records go to the back."""

    __slots__ = ("_due", "connection_id", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: Iterable[SharedPartition], connection_id: int) -> None:
        self.key = key
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.connection_id = connection_id
        self.partitions: dict[SharedPartition, None] = dict.fromkeys(partitions)
        # Partitions that the next answer names whatever it has to say of them: they are new, or had an error.
        self._due: set[SharedPartition] = set()

    def update(self, added: Iterable[SharedPartition], forgotten: Iterable[SharedPartition]) -> None:
        """Add partitions, and take others away."""
        for each in added:
            if each not in self.partitions:
                self.partitions[each] = None
                self._due.add(each)
        for each in forgotten:
            self.partitions.pop(each, None)
            self._due.discard(each)

    def answers(self, partition: SharedPartition, *, has_records: bool, has_error: bool) -> bool:
        """Say whether the answer has to name a partition, and remember that it did."""
        due = partition in self._due
        self._due.discard(partition)
        if has_error:
            self._due.add(partition)
        if has_records and partition in self.partitions:
            del self.partitions[partition]
            self.partitions[partition] = None
        return due or has_records or has_error

    def rotated(self, epoch: int) -> list[SharedPartition]:
        """Return the partitions for a request of this epoch, beginning with another one every time."""
        partitions = list(self.partitions)
        if not partitions or epoch < 1:
            return partitions
        first = epoch % len(partitions)
        return partitions[first:] + partitions[:first]


class ShareSessions:
    """All sessions of a broker."""

    __slots__ = ("_by_connection", "_members", "_sessions", "_sessions_max")

    def __init__(self, sessions_max: int) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[int, dict[SessionKey, None]] = {}
        self._members: dict[str, int] = {}
        self._sessions_max = sessions_max

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions read."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def find(self, key: SessionKey) -> ShareSession | None:
        """Return a session."""
        return self._sessions.get(key)

    def fetch(
        self,
        key: SessionKey,
        epoch: int,
        partitions: Iterable[SharedPartition],
        forgotten: Iterable[SharedPartition] = (),
        *,
        acknowledges: bool = False,
        connection_id: int,
    ) -> ShareSession:
        """Return the session of a ShareFetch, opened anew or a step further; with the last epoch, as it is.

        SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED; INVALID_REQUEST for
        acknowledgements in the first request of a session.
        """
        if epoch == FINAL_EPOCH:
            return self._known(key)
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "a new session has nothing to acknowledge")
            return self._open(key, partitions, connection_id)
        session = self._step(key, epoch)
        session.update(partitions, forgotten)
        return session

    def acknowledge(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session of a ShareAcknowledge, a step further; it cannot be the first request of one."""
        if epoch == INITIAL_EPOCH:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return self._known(key) if epoch == FINAL_EPOCH else self._step(key, epoch)

    def close(self, key: SessionKey) -> list[SharedPartition]:
        """End a session, and return the partitions in which the member may hold records."""
        return list(self._remove(self._known(key)).partitions)

    def disconnected(self, connection_id: int) -> list[ShareSession]:
        """End the sessions that were opened on a connection, and return them."""
        keys = tuple(self._by_connection.get(connection_id, ()))
        return [self._remove(self._sessions[key]) for key in keys]

    def reads(self, group_id: str) -> bool:
        """Whether a member of the group has a session; when none has, its share partitions may be dropped."""
        return group_id in self._members

    def clear(self) -> None:
        """End every session, as when share groups are switched off."""
        self._sessions.clear()
        self._by_connection.clear()
        self._members.clear()

    def _known(self, key: SessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise BrokerError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def _step(self, key: SessionKey, epoch: int) -> ShareSession:
        session = self._known(key)
        if session.epoch != epoch:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def _open(
        self, key: SessionKey, partitions: Iterable[SharedPartition], connection_id: int
    ) -> ShareSession:
        old = self._sessions.get(key)
        if old is not None:
            self._remove(old)
        if len(self._sessions) >= self._sessions_max:
            raise BrokerError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(key, partitions, connection_id)
        self._sessions[key] = session
        self._by_connection.setdefault(connection_id, {})[key] = None
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        return session

    def _remove(self, session: ShareSession) -> ShareSession:
        del self._sessions[session.key]
        others = self._by_connection[session.connection_id]
        del others[session.key]
        if not others:
            del self._by_connection[session.connection_id]
        left = self._members[session.key.group_id] - 1
        if left:
            self._members[session.key.group_id] = left
        else:
            del self._members[session.key.group_id]
        return session


def next_epoch(epoch: int) -> int:
    """Return the epoch of the request after one; the last is followed by none other, the highest by 1."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1
