"""The truncations that a follower's logs wait for: checkpoints are lowered for all of them, then they are cut.

L15 However many logs of a directory are to be cut at once, each of its checkpoints is written once for them.
    A turn of the loop cuts a few logs, so that nobody else waits for all of them.
Z1  Whatever fails for one truncation, every other is made; each is told whether its checkpoints could be lowered.

    add() --> WAITING --end of the turn--> checkpoints lowered --> cut(None), a few a turn
                                                |
                                                +--> cut(error)
"""

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from ottla.broker.broker import Timers
from ottla.log.truncation import lower_checkpoints
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError

_CUTS_A_TURN = 16

Cut = Callable[[BrokerError | None], None]


class _Truncation(NamedTuple):
    """Where a log is to be cut, and who does it."""

    offset: int
    cut: Cut


class Truncations:
    """Those of one fetcher. A `cut` that raises has nobody to hear of it: it takes care of what may fail itself."""

    __slots__ = ("_closed", "_timers", "_waiting")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: dict[Partition, _Truncation] = {}
        self._closed = False

    def add(self, partition: Partition, offset: int, cut: Cut) -> None:
        """Have `cut` called soon, once no checkpoint speaks of `offset` or above; with an error if that cannot be."""
        if not self._waiting:
            self._timers.call_soon(self._step)
        self._waiting[partition] = _Truncation(offset, cut)

    def close(self) -> None:
        """Cut nothing more."""
        self._closed = True
        self._waiting.clear()

    def _step(self) -> None:
        waiting = self._waiting
        if self._closed or not waiting:
            return
        # All, each time: a chore may have written checkpoints meanwhile. What is low already costs no write.
        cuts = [(partition.log, truncation.offset) for partition, truncation in waiting.items()]
        failed = lower_checkpoints(cuts)
        count = 0
        for partition in tuple(waiting) if failed else tuple(islice(waiting, _CUTS_A_TURN)):
            error = failed.get(partition.log)
            if error is None and count == _CUTS_A_TURN:
                continue
            count += error is None
            waiting.pop(partition).cut(error)
            if self._closed:
                return
        if waiting:
            self._timers.call_soon(self._step)
