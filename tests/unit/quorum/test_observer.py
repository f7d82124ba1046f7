"""V6 to V8: what an observer does when its own disk, or we ourselves, fail it for a moment."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ottla.log.identity import read_identity
from ottla.log.log import Log
from ottla.metadata.error import MetadataError
from ottla.quorum import driver
from ottla.quorum.driver import Answered
from ottla.quorum.quorum import Quorum
from ottla.quorum.storage import Format, format_storage
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.settings import Node
from ottla.wire.apis import BY_KEY
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.world.disk import RealDisk, RealFile
from ottla.world.entropy import SeededEntropy
from ottla.world.worker import InlineWorker
from tests.unit.quorum.workshop import ADDRESS, CLUSTER_ID, Workshop

OBSERVER = 9


class FaultyDisk(RealDisk):
    """A disk on which the next access to a snapshot may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.read_error: int | None = None
        self.remove_error: int | None = None

    def read_bytes(self, path: str) -> bytes:
        if path.endswith(".checkpoint") and self.read_error is not None:
            code, self.read_error = self.read_error, None
            raise OSError(code, "made to fail", path)
        return super().read_bytes(path)

    def remove(self, path: str) -> None:
        if path.endswith(".checkpoint") and self.remove_error is not None:
            code, self.remove_error = self.remove_error, None
            raise OSError(code, "made to fail", path)
        super().remove(path)


class Timer:
    def __init__(self, due_ms: float, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Observer:
    """A node without a vote beside a leader, whose log begins behind what the node has."""

    def __init__(self, path: Path) -> None:
        self.leader = Workshop(path, snapshot_bytes=2000, retention_bytes=3000, segment_bytes=2000)
        self.leader.join()
        self.disk = FaultyDisk()
        self.timers: list[Timer] = []
        self.failures: list[OSError] = []
        self.warnings: list[str] = []
        directory = str(path / "observer")
        clock = self.leader.clock
        wanted = Format(CLUSTER_ID, OBSERVER, [directory], directory, dynamic=True)
        format_storage(self.disk, clock, SeededEntropy(OBSERVER), wanted)
        self.grow(30)
        self.quorum: Quorum[Any] = Quorum(
            Surroundings(
                self.disk,
                clock,
                InlineWorker(),
                lambda callback: self.later(0, callback),
                self.warnings.append,
                self.failures.append,
                self.later,
                lambda bound: 0,
            ),
            QuorumSettings(
                OBSERVER,
                directory,
                read_identity(self.disk, directory).directory_id,
                cluster_id="",
                bootstrap=(Node(1, ADDRESS.host, ADDRESS.port),),
                can_vote=False,
            ),
            self,
        )

    def grow(self, topics: int) -> None:
        """Let the leader write, take snapshots, and cut its log."""
        for _ in range(topics):
            self.leader.create(f"topic-{len(self.leader.quorum.image.topics.by_name)}", partitions=2)
            self.leader.clock.ms += 10
            self.leader.quorum.tick()

    def later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(self.leader.clock.ms + seconds * 1000, callback)
        self.timers.append(timer)
        return timer

    def ask(self, node: Node, request: Message, answered: Answered) -> None:
        """Carry a request to the leader and its answer back."""
        assert request.api_key is not None
        api = BY_KEY[request.api_key]
        version = api.stable_versions[-1]
        message = type(request).decode(request.encode(version), version)

        def reply(answer: Message) -> None:
            data = bytes(answer.encode(version))
            self.later(0.001, lambda: answered(api.response.decode(data, version)))

        self.leader.quorum.serve(message, version, "CONTROLLER", reply)

    def run(self, ms: int) -> None:
        """Let time pass."""
        end_ms = self.leader.clock.ms + ms
        while due := [each for each in self.timers if not each.is_cancelled and each.due_ms <= end_ms]:
            first = min(due, key=lambda each: each.due_ms)
            first.is_cancelled = True
            self.leader.clock.ms = max(self.leader.clock.ms, int(first.due_ms))
            first.callback()
            self.timers = [each for each in self.timers if not each.is_cancelled]
        self.leader.clock.ms = end_ms
        self.quorum.tick()

    @property
    def is_level(self) -> bool:
        """Whether it has the leader's image."""
        return self.quorum.image.topics.by_name.keys() == self.leader.quorum.image.topics.by_name.keys()


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    return Observer(tmp_path)


def test_a_snapshot_that_cannot_be_opened_is_fetched_again(observer: Observer) -> None:
    observer.disk.read_error = errno.EMFILE
    observer.quorum.start(lambda *_: None)
    observer.run(3_000)
    assert observer.is_level and not observer.failures
    assert any("fetched again" in each for each in observer.warnings)
    observer.grow(1)
    observer.run(3_000)
    assert observer.is_level


def test_a_snapshot_that_the_disk_cannot_give_back_ends_it(observer: Observer) -> None:
    observer.disk.read_error = errno.EIO
    observer.quorum.start(lambda *_: None)
    observer.run(3_000)
    assert [each.errno for each in observer.failures] == [errno.EIO]


def test_an_older_snapshot_that_cannot_be_removed_holds_nothing_up(observer: Observer) -> None:
    observer.quorum.start(lambda *_: None)
    observer.run(3_000)
    assert observer.is_level
    observer.grow(60)  # while it hears nothing: no timer runs
    observer.disk.remove_error = errno.EIO
    observer.run(6_000)
    assert observer.disk.remove_error is None
    assert observer.is_level and not observer.failures
    assert any("stay until the next one" in each for each in observer.warnings)


def test_what_is_committed_and_cannot_be_taken_in_ends_it(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer.quorum.start(lambda *_: None)
    observer.run(3_000)

    def unreadable(*_: object) -> int:
        raise MetadataError("a record of a later release")

    monkeypatch.setattr("ottla.quorum.quorum.fold_batches", unreadable)
    monkeypatch.setattr("ottla.quorum.metadata_log._fold_snapshot", unreadable)
    observer.grow(1)
    observer.run(3_000)
    assert ["a record of a later release" in str(each) for each in observer.failures] == [True]


OWN_FAULT = OSError(errno.EINVAL, "Invalid argument")


def fail_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, of: str = "") -> list[str]:
    """Have the first two calls fail that concern the observer's log or, with `of`, its files of such names."""
    written, calls = getattr(owner, name), []

    def fail(*arguments: Any) -> Any:
        path = getattr(arguments[0], "path", "")
        if not path or ("/observer/" in path and path.endswith(of)):
            calls.append(path)
            if len(calls) <= 2:
                raise OWN_FAULT
        return written(*arguments)

    monkeypatch.setattr(owner, name, fail)
    return calls


@pytest.mark.parametrize("where", ["election state", "cut", "batch", "file", "snapshot"])
def test_a_write_that_fails_by_our_own_fault_is_done_again_and_nothing_is_lost(
    observer: Observer, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    observer.quorum.start(lambda *_: None)
    if where not in ("election state", "snapshot"):
        observer.run(3_000)
        observer.grow(60 if where == "cut" else 3)  # with 60 its log ends below where the leader's begins
    calls = {
        "election state": lambda: fail_at(monkeypatch, driver, "write_election_state"),
        "cut": lambda: fail_at(monkeypatch, Log, "truncate_fully_and_start_at", "-0"),
        "batch": lambda: fail_at(monkeypatch, Log, "append_as_follower", "-0"),
        "file": lambda: fail_at(monkeypatch, RealFile, "append", ".log"),
        "snapshot": lambda: fail_at(monkeypatch, RealFile, "append", ".part"),
    }[where]()
    observer.run(9_000)
    assert len(calls) > 2
    assert observer.failures == [] and observer.is_level
    assert any("a bug of Ottla" in text and "Invalid argument" in text for text in observer.warnings)
    observer.grow(1)
    observer.run(3_000)
    assert observer.is_level and observer.failures == []


def test_while_a_write_of_ours_fails_requests_are_answered_with_an_error(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer.quorum.start(lambda *_: None)
    observer.run(3_000)
    observer.grow(1)
    with monkeypatch.context() as patch:
        patch.setattr(Log, "append_as_follower", Mock(side_effect=OWN_FAULT))
        observer.run(2_000)
        answers: list[Any] = []
        observer.quorum.serve(DescribeQuorumRequest(), 2, "CONTROLLER", answers.append)
        assert [each.error_code for each in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR]
        pending = [each for each in observer.timers if not each.is_cancelled]
        assert len(pending) < 5, "and nobody asks without end"
    observer.run(5_000)
    assert observer.is_level and observer.failures == []
