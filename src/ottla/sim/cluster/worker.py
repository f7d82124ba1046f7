"""Threads that are none: work takes virtual time, is done in order, and comes back as an event of its process."""

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.sim.loop import Process
from ottla.world.entropy import Entropy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.world.worker import Done


class _Job(NamedTuple):
    work: "Callable[[], Any]"
    done: "Done"
    end: float


class SimWorker:
    """One thread. The work happens all at once, halfway between its begin and its end.

    A process that is stopped has its threads stopped with it; one that has died, dead.
    """

    __slots__ = ("_delay_s", "_draw", "_free_at", "_jobs", "_process")

    def __init__(
        self, process: Process, entropy: Entropy, delay_s: "Callable[[], tuple[float, float]]"
    ) -> None:
        self._process = process
        self._draw = entropy.random
        self._delay_s = delay_s
        self._free_at = 0.0
        self._jobs: deque[_Job] = deque()

    def run(self, work: "Callable[[], Any]", done: "Done") -> None:
        """Do the work in a while, then call back."""
        low, high = self._delay_s()
        begin = max(self._free_at, self._process.time())
        half_s = (low + self._draw() * (high - low)) / 2
        self._free_at = begin + 2 * half_s
        self._jobs.append(_Job(work, done, self._free_at))
        self._process.call_at(begin + half_s, self._do)

    def _do(self) -> None:
        if not self._jobs:
            return  # a stop was quicker
        work, done, end = self._jobs.popleft()
        try:
            result, error = work(), None
        except Exception as raised:  # noqa: BLE001  # the caller judges it
            result, error = None, raised
        self._process.call_at(end, done, result, error)

    def stop(self) -> None:
        """Finish what was given; the answers are there in this moment."""
        while self._jobs:
            self._jobs[0] = self._jobs[0]._replace(end=self._process.time())
            self._do()
