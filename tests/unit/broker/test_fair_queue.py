"""Turns in a thread that connections share."""

from ottla.broker.fair_queue import FairQueue, Job
from ottla.world.worker import InlineWorker


class Peer:
    def __init__(self):
        self.closed = False
        self.on_close = []

    def close(self):
        self.closed = True
        waiting, self.on_close = self.on_close, []
        for callback in waiting:
            callback()


class Thread:
    """A thread that works when it is told to."""

    def __init__(self):
        self.jobs = []

    def run(self, work, done):
        self.jobs.append((work, done))

    def work(self):
        work, done = self.jobs.pop(0)
        done(work(), None)

    def stop(self):
        """Nothing has to end."""


def make():
    thread = Thread()
    return thread, FairQueue(lambda: thread), []


def job(told, name, outlives=None):
    return Job(lambda: lambda: name, lambda result, error: told.append(result or error), outlives)


def test_connections_take_turns():
    thread, queue, told = make()
    first, second, third = Peer(), Peer(), Peer()
    for number in range(3):
        queue.submit(first, job(told, f"first {number}"))
    for number in range(2):
        queue.submit(second, job(told, f"second {number}"))
    thread.work()
    queue.submit(third, job(told, "third"))
    queue.submit(None, job(told, "own"))
    while thread.jobs:
        assert len(thread.jobs) == 1
        thread.work()
    assert told == ["first 0", "first 1", "second 0", "first 2", "third", "own", "second 1"]
    assert not queue._owners
    assert not first.on_close + second.on_close + third.on_close


def test_who_closes_has_its_jobs_dropped_but_for_those_that_outlive_it():
    thread, queue, told = make()
    gone, other = Peer(), Peer()
    has_room = iter((True, False))
    for name, outlives in (
        ("under way", None),
        ("dropped", None),
        ("kept", lambda: next(has_room)),
        ("told to be dropped", lambda: next(has_room)),
    ):
        queue.submit(gone, job(told, name, outlives))
    queue.submit(other, job(told, "other"))
    gone.close()
    queue.submit(gone, job(told, "late"))
    queue.submit(gone, job(told, "late and kept", outlives=lambda: True))
    assert len(queue) == 3 and [type(each) for each in told] == [ConnectionError]
    told.clear()
    while thread.jobs:
        thread.work()
    assert sorted(told) == ["kept", "late and kept", "other", "under way"]
    assert not queue._owners


def test_a_job_that_breaks_or_has_no_work_holds_up_nobody():
    thread, queue, told = make()
    peer, broken = Peer(), ValueError("broken")

    def breaks():
        raise broken

    queue.submit(peer, job(told, "first"))
    queue.submit(peer, Job(breaks, lambda result, error: told.append(error)))
    queue.submit(peer, Job(lambda: None, lambda result, error: told.append("never")))
    queue.submit(peer, job(told, "last"))
    while thread.jobs:
        thread.work()
    assert told == ["first", broken, "last"]


def test_a_worker_that_is_no_thread_does_many_without_recursion():
    told = []
    queue = FairQueue(InlineWorker)

    def again(left):
        def done(result, error):
            told.append(result)
            if left:
                queue.submit(None, again(left - 1))

        return Job(lambda: lambda: left, done)

    queue.submit(None, again(5_000))
    assert told == list(range(5_000, -1, -1))
