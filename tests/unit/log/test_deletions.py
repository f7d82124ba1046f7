"""What goes later: in a worker, all of it, and what cannot go is tried again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.log.deletions import Deletions
from ottla.world.disk import RealDisk
from ottla.world.worker import Done


class HeldWorker:
    """Keeps the work until it is told to do it."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Done]] = []

    def run(self, work: Callable[[], Any], done: Done) -> None:
        self.jobs.append((work, done))

    def stop(self) -> None: ...

    def work(self) -> None:
        for work, done in self.jobs:
            done(work(), None)
        self.jobs = []


def test_nothing_is_removed_on_the_loop(tmp_path: Path) -> None:
    said: list[str] = []
    deletions, worker = Deletions(RealDisk(), said.append), HeldWorker()
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.mkdir()
        (path / "0.log").touch()
    deletions.add([str(path) for path in paths], 1000)
    deletions.start(5, worker)
    assert worker.jobs == []
    deletions.start(1005, worker)
    deletions.start(1006, worker)  # what is under way is not begun again
    assert len(worker.jobs) == 1
    assert all(path.exists() for path in paths)
    worker.work()
    assert not any(path.exists() for path in paths)
    deletions.start(9999, worker)
    assert worker.jobs == []
    assert said == []


def test_a_worker_that_broke_leaves_everything_to_be_removed_later(tmp_path: Path) -> None:
    said: list[str] = []
    deletions, worker = Deletions(RealDisk(), said.append), HeldWorker()
    (tmp_path / "a").mkdir()
    deletions.add([str(tmp_path / "a")], 0)
    deletions.start(0, worker)
    [(_, done)] = worker.jobs
    done(None, MemoryError("no memory"))
    worker.jobs = []
    assert len(said) == 1
    assert "no memory" in said[0]
    deletions.start(5, worker)
    worker.work()
    assert not (tmp_path / "a").exists()
