"""How far another copy of the log is, as its leader knows from the fetches it got."""

from ottla.raft.voters import ReplicaKey

UNKNOWN = -1


class Progress:
    """One copy: a voter's or an observer's."""

    __slots__ = ("_leader_end_offset", "caught_up_ms", "end_offset", "fetched_ms", "key")

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.end_offset = UNKNOWN
        self.fetched_ms = UNKNOWN
        self.caught_up_ms = UNKNOWN
        self._leader_end_offset = UNKNOWN  # when it fetched last

    def fetch(self, offset: int, leader_end_offset: int, now: int) -> None:
        """Note a fetch: the copy has all before `offset`."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now)
        elif 0 < self._leader_end_offset <= offset:
            # It has reached what was the end when it fetched before.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self._leader_end_offset = leader_end_offset
        self.fetched_ms = max(self.fetched_ms, now)
        self.end_offset = offset
