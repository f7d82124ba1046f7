"""Throttles of replication: how fast replicas that catch up may be given, and may take, what they lack.

T1  Two settings make a throttle: a topic names the replicas it is about (`leader.` and
    `follower.replication.throttled.replicas`), the broker the bytes a second that all of them together may have.
T2  Whoever is in sync is never held back. What it gets counts, so those who catch up leave room for it.
T3  Speed is measured in windows, over as many as there are; a burst is paid for until its window has passed.
T4  Where nothing is named, a question costs one look at an empty dict.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ottla.metadata.config import ConfigType
from ottla.metadata.delta import Delta
from ottla.metadata.image import Image
from ottla.metadata.settings.definition import LONG_MAX

ALL = "*"


class Replica(Protocol):
    """A replica, as far as throttles are concerned."""

    topic: str
    index: int


class Throttle:
    """One side: what leaders here give, or what followers here take."""

    def __init__(
        self,
        replicas: str,
        rate: str,
        node_id: int,
        now_ms: Callable[[], int],
        values: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.replicas = replicas
        self._rate = rate
        self._node_id = node_id
        self._now_ms = now_ms
        self._values = values
        self._windows: deque[list[int]] = deque()  # begin and bytes of each, the latest last
        self.named: dict[str, frozenset[int] | None] = {}  # topic to partitions, None for all

    def __bool__(self) -> bool:
        return bool(self.named)

    def name(self, topic: str, entries: Iterable[str]) -> None:
        """Take over which replicas of a topic are meant: `partition:broker`, or all."""
        entries = tuple(entries)
        if ALL in entries:
            self.named[topic] = None
            return
        pairs = [entry.split(":") for entry in entries if ":" in entry]
        partitions = frozenset(int(partition) for partition, broker in pairs if int(broker) == self._node_id)
        if partitions:
            self.named[topic] = partitions
        else:
            self.named.pop(topic, None)

    def covers(self, replica: Replica) -> bool:
        """Whether a replica is meant."""
        partitions = self.named.get(replica.topic, frozenset())
        return partitions is None or replica.index in partitions

    def holds_back(self, replica: Replica, *, in_sync: bool) -> bool:
        """Whether a replica has to wait (T2)."""
        return bool(self.named) and not in_sync and self.covers(replica) and self.is_exceeded()

    def is_exceeded(self) -> bool:
        """Whether more went by, of late, than may."""
        limit: int = self._values().get(self._rate, LONG_MAX)
        self._forget()
        if not self._windows:
            return False
        elapsed_ms = max(self._window_ms, self._now_ms() - self._windows[0][0])
        return sum(size for _, size in self._windows) * 1000 > limit * elapsed_ms

    def record(self, replica: Replica, size_bytes: int) -> None:
        """Count what a replica was given, or took."""
        if not self.covers(replica):
            return
        self._forget()
        now_ms = self._now_ms()
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append([now_ms, 0])
        self._windows[-1][1] += size_bytes

    @property
    def _window_ms(self) -> int:
        return int(self._values()["replication.quota.window.size.seconds"]) * 1000

    def _forget(self) -> None:
        oldest_ms = self._now_ms() - self._window_ms * self._values()["replication.quota.window.num"]
        while self._windows and self._windows[0][0] <= oldest_ms:
            self._windows.popleft()


class Throttles:
    """Both sides."""

    def __init__(
        self, node_id: int, now_ms: Callable[[], int], values: Callable[[], Mapping[str, Any]]
    ) -> None:
        self.giving = Throttle(
            "leader.replication.throttled.replicas",
            "leader.replication.throttled.rate",
            node_id,
            now_ms,
            values,
        )
        self.taking = Throttle(
            "follower.replication.throttled.replicas",
            "follower.replication.throttled.rate",
            node_id,
            now_ms,
            values,
        )

    def apply(self, delta: Delta, image: Image) -> None:
        """Follow the settings of topics."""
        for kind, topic in delta.configs:
            if kind == ConfigType.TOPIC:
                configs = image.configs.of(ConfigType.TOPIC, topic)
                for side in (self.giving, self.taking):
                    text = configs.get(side.replicas, "")
                    side.name(topic, (entry.strip() for entry in text.split(",") if entry.strip()))
