"""The truncations that a follower's logs wait for: checkpoints are lowered for all of them, then they are cut.

L15 However many logs of a directory are to be cut at once, each of its checkpoints is written once for them.
    A turn of the loop cuts a few logs, so that nobody else waits for all of them.
L16 No cut reads more than a little on the loop: what producers a log will have is read in a thread where that may take
    long, with the log at rest.
Z1  Whatever fails for one truncation, every other is made; each is told whether its checkpoints could be lowered.

    add() --> WAITING --end of the turn--> checkpoints lowered --> cut(None), a few a turn
                                                |               ^
                                                +--> cut(error) +-- rewound in a thread
"""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.broker import Timers
from ottla.log.truncation import lower_checkpoints
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.worker import Worker

if TYPE_CHECKING:
    from ottla.log.rewind import Rewind

_CUTS_A_TURN = 8
_INLINE_BYTES = 256 << 10

Cut = Callable[[BrokerError | None], None]


class _Truncation(NamedTuple):
    """Where a log is to be cut, and who does it."""

    offset: int
    cut: Cut


class Truncations:
    """Those of one fetcher. A `cut` that raises has nobody to hear of it: it takes care of what may fail itself."""

    __slots__ = ("_closed", "_timers", "_waiting", "_worker")

    def __init__(self, timers: Timers, worker: Worker) -> None:
        self._timers = timers
        self._worker = worker
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
            self._cut(partition, waiting.pop(partition), error)
            if self._closed:
                return
        if waiting:
            self._timers.call_soon(self._step)

    def _cut(self, partition: Partition, truncation: _Truncation, error: BrokerError | None) -> None:
        log, cut = partition.log, truncation.cut
        rewind: Rewind | None = None
        if error is None:
            try:
                rewind = log.rewind_to(truncation.offset)
            except BrokerError as failure:
                error = failure
        if rewind is None or rewind.size_bytes <= _INLINE_BYTES:
            cut(error)
            return
        read = rewind

        def done(_: object, failure: BaseException | None) -> None:
            if self._closed:
                return
            if isinstance(failure, OSError):
                cut(log.storage_error(failure))
                return
            if failure is not None:
                log.report_bug(failure)
                cut(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"a truncation broke off: {failure!r}"))
                return
            log.rewound = read
            try:
                cut(None)
            finally:
                log.rewound = None

        self._worker.run(read.run, done)
