"""Work off the loop: in order, answered on the loop, finished before a stop."""

import asyncio
import threading

import pytest

from ottla.world.worker import InlineWorker, ThreadWorker


class Answers:
    """What came back, on which thread, and whether all of it is there."""

    def __init__(self, expected):
        self.expected = expected
        self.outcomes = []
        self.threads = set()
        self.complete = asyncio.Event()

    def __call__(self, result, error):
        self.outcomes.append((result, error))
        self.threads.add(threading.get_ident())
        if len(self.outcomes) == self.expected:
            self.complete.set()

    async def wait(self):
        await asyncio.wait_for(self.complete.wait(), 10)


def test_work_is_done_elsewhere_in_order_and_answered_here():
    async def main():
        worker = ThreadWorker(asyncio.get_running_loop(), "test-worker")
        answers = Answers(20)
        for n in range(20):
            worker.run(lambda n=n: (n, threading.current_thread().name), answers)
        await answers.wait()
        worker.stop()
        assert answers.outcomes == [((n, "test-worker"), None) for n in range(20)]
        assert answers.threads == {threading.get_ident()}

    asyncio.run(main())


def test_the_loop_goes_on_meanwhile():
    async def main():
        worker = ThreadWorker(asyncio.get_running_loop(), "test-worker")
        answers = Answers(1)
        gate = threading.Event()
        worker.run(lambda: gate.wait(10), answers)
        await asyncio.sleep(0)
        assert answers.outcomes == []
        gate.set()
        await answers.wait()
        assert answers.outcomes == [(True, None)]
        worker.stop()

    asyncio.run(main())


@pytest.mark.parametrize("error", [OSError("broken"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failure_is_answered_and_the_next_work_done(error):
    def fail():
        raise error

    async def main():
        worker = ThreadWorker(asyncio.get_running_loop(), "test-worker")
        answers = Answers(2)
        worker.run(fail, answers)
        worker.run(lambda: 1, answers)
        await answers.wait()
        worker.stop()
        assert answers.outcomes == [(None, error), (1, None)]

    asyncio.run(main())


def test_a_stop_finishes_what_was_given():
    async def main():
        worker = ThreadWorker(asyncio.get_running_loop(), "test-worker")
        answers = Answers(5)
        gate = threading.Event()
        done = []
        worker.run(lambda: gate.wait(10), answers)
        for n in range(4):
            worker.run(lambda n=n: done.append(n), answers)
        gate.set()
        worker.stop()
        assert done == [0, 1, 2, 3]
        assert not [thread for thread in threading.enumerate() if thread.name == "test-worker"]
        await answers.wait()

    asyncio.run(main())


def test_a_closed_loop_gets_no_answers():
    loop = asyncio.new_event_loop()
    worker = ThreadWorker(loop, "test-worker")
    loop.close()
    outcomes = []
    worker.run(lambda: 1, lambda *outcome: outcomes.append(outcome))
    worker.stop()
    assert outcomes == []


def test_working_inline():
    outcomes = []
    worker = InlineWorker()
    worker.run(lambda: 3, lambda *outcome: outcomes.append(outcome))
    error = OSError("broken")

    def fail():
        raise error

    worker.run(fail, lambda *outcome: outcomes.append(outcome))
    worker.stop()
    assert outcomes == [(3, None), (None, error)]
