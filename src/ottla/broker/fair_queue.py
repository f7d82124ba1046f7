"""Whose job a thread does next, where many connections share it: that inspects batches, or that searches them by time.

Q1  One job is in the thread at a time, and connections take turns, a job each. So who comes now waits for the job
    in the thread and one of everybody who came before, and not for all their jobs.
Q2  A job that waits is only a function: what it needs is made by `begin`, on the loop, when it has its turn.
Q3  When a connection has closed its jobs are dropped, but for those that are to be done whatever became of it: a batch
    that has arrived whole is stored, as in Kafka, unless too much waits already.

    submit() --its turn--> begin() --> work, in the thread --> done()
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.channel.connection import Connection
from ottla.world.worker import Done, Worker

Work = Callable[[], Any]


class Job(NamedTuple):
    """What is to be done. `begin` returns the work for the thread, or None where there is none any more."""

    begin: Callable[[], Work | None]
    done: Done
    # Whether it is done though its connection has closed; one that says no is told so by `done`.
    outlives: Callable[[], bool] | None = None


class _Owner:
    """A connection with its jobs, in their order."""

    __slots__ = ("_queue", "connection", "jobs")

    def __init__(self, connection: Connection | None, queue: "FairQueue") -> None:
        self.connection = connection
        self.jobs: deque[Job] = deque()
        self._queue = queue

    def closed(self) -> None:
        """The connection is gone."""
        jobs, self.jobs = self.jobs, deque()
        dropped: list[Job] = []
        for job in jobs:
            if job.outlives is not None:
                (self.jobs if job.outlives() else dropped).append(job)
        if not self.jobs:
            self._queue.forget(self)
        for job in dropped:
            job.done(None, ConnectionError("the client has gone"))


class FairQueue:
    """The jobs that wait for a thread."""

    __slots__ = ("_is_busy", "_is_starting", "_owners", "_worker")

    def __init__(self, worker: Callable[[], Worker]) -> None:
        self._worker = worker
        self._owners: dict[int, _Owner] = {}  # by the connection's id; the first has the next turn
        self._is_busy = False
        self._is_starting = False

    def __len__(self) -> int:
        """Return how many jobs wait."""
        return sum(len(owner.jobs) for owner in self._owners.values())

    def submit(self, connection: Connection | None, job: Job) -> None:
        """Have a job done for a connection; None stands for this broker itself."""
        if connection is not None and connection.closed and job.outlives is None:
            return
        owner = self._owners.get(id(connection))
        if owner is None:
            owner = self._owners[id(connection)] = _Owner(connection, self)
            if connection is not None:
                connection.on_close.append(owner.closed)
        owner.jobs.append(job)
        self._start()

    def forget(self, owner: _Owner) -> None:
        """A connection has no more jobs."""
        del self._owners[id(owner.connection)]
        if owner.connection is not None and owner.closed in owner.connection.on_close:
            owner.connection.on_close.remove(owner.closed)

    def _start(self) -> None:
        """Have the thread busy. A worker that is no thread is done when it returns: the loop here does the next."""
        if self._is_starting:
            return
        self._is_starting = True
        try:
            while self._owners and not self._is_busy:
                job = self._next()
                try:
                    work = job.begin()
                except Exception as error:  # noqa: BLE001  # the job's, and not of whoever came before it
                    job.done(None, error)
                    continue
                if work is not None:
                    self._is_busy = True
                    self._run(work, job.done)
        finally:
            self._is_starting = False

    def _next(self) -> Job:
        """Take the job whose turn it is; its connection goes behind the others."""
        owner = next(iter(self._owners.values()))
        job = owner.jobs.popleft()
        if owner.jobs:
            self._owners[id(owner.connection)] = self._owners.pop(id(owner.connection))
        else:
            self.forget(owner)
        return job

    def _run(self, work: Work, done: Done) -> None:
        def over(result: Any, error: BaseException | None) -> None:
            self._is_busy = False
            try:
                done(result, error)
            finally:
                self._start()

        self._worker().run(work, over)
