"""What a node does on its own fails for one partition: it goes on for the others, and is tried again."""

import errno
from collections.abc import Iterator

import pytest

from ottla.log.cleaner import Cleaner, Cleaning
from ottla.metadata.config import ConfigType
from ottla.node.node import Node
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.faults.by_hand import Hand, batch, hand
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import DATA, NodeThread
from tests.peers.deadline import eventually

OFTEN = {
    "ottla.flush": "os",
    "log.retention.check.interval.ms": "50",
    "log.cleaner.backoff.ms": "50",
    "log.segment.bytes": "1048576",
}


@pytest.fixture
def runner() -> Iterator[NodeThread]:
    running = NodeThread(ForgetfulDisk(), OFTEN).format().start()
    try:
        yield running
    finally:
        running.abandon()


def start_offset(runner: NodeThread, topic: str) -> int:
    found: int = runner.call(lambda node: node.table.by_name(topic, 0).log.start_offset)
    return found


def test_one_that_cannot_roll_on_a_full_disk_keeps_no_other_from_freeing_space(runner: NodeThread) -> None:
    disk = runner.disk
    assert isinstance(disk, ForgetfulDisk)
    full = True

    def before(what: str, path: str) -> None:
        if full and what in ("create", "append") and path.startswith(f"{DATA}/a-0/"):
            raise OSError(errno.ENOSPC, "No space left on device", path)

    with hand(runner.port) as client:
        for topic in "abc":
            assert client.create_topic(topic, retention_ms=-1) is ErrorCode.NONE
            assert client.produce(topic, batch(b"old", timestamp_ms=1_000))[0] is ErrorCode.NONE
        disk.before = before
        for topic in "abc":
            _alter(client, topic, "retention.ms", "1000")
        eventually(lambda: start_offset(runner, "b") == start_offset(runner, "c") == 1)
        assert start_offset(runner, "a") == 0
        eventually(lambda: any("retention of a-0 has failed" in each for each in runner.reports))
        full = False
        eventually(lambda: start_offset(runner, "a") == 1)
    assert not runner.errors
    assert not runner.gave_up


@pytest.mark.parametrize("where", ["clean", "install"])
def test_a_cleaning_that_breaks_ends_no_other(
    runner: NodeThread, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Whether in the thread or on the loop, and whatever it was."""
    disk = runner.disk
    broken: list[str] = []

    def strike(topic: str) -> None:
        if topic == "a":
            broken.append(topic)
            raise RuntimeError("nobody expects this")

    if where == "install":
        real_install = Cleaner.install

        def install(self: Cleaner, cleaning: object, done: object) -> bool:
            strike(cleaning.log.topic)  # type: ignore[attr-defined]
            return real_install(self, cleaning, done)  # type: ignore[arg-type]

        monkeypatch.setattr(Cleaner, "install", install)
    else:
        real_clean = Cleaning.clean

        def clean(self: Cleaning) -> object:
            strike(self.log.topic)
            return real_clean(self)

        monkeypatch.setattr(Cleaning, "clean", clean)
    with hand(runner.port) as client:
        for topic in "ab":
            settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
            assert client.create_topic(topic, **settings) is ErrorCode.NONE
            for n in range(4):
                assert client.produce(topic, batch(b"%d" % n * 400_000))[0] is ErrorCode.NONE

        def is_clean() -> bool:
            path = f"{DATA}/cleaner-offset-checkpoint"
            return disk.exists(path) and b"b 0 " in disk.read_bytes(path)

        eventually(is_clean)
    assert broken
    eventually(lambda: any("nobody expects this" in each for each in runner.reports))
    assert not runner.errors


def test_what_is_cut_is_dirty_again(runner: NodeThread) -> None:
    """The node tells its cleaner of every cut: what is written there later would be taken for compacted."""
    path = f"{DATA}/cleaner-offset-checkpoint"
    disk = runner.disk

    def clean_offset() -> int:
        lines = disk.read_bytes(path).decode().splitlines() if disk.exists(path) else []
        return next((int(line.split()[2]) for line in lines if line.startswith("b 0 ")), -1)

    with hand(runner.port) as client:
        settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
        assert client.create_topic("b", **settings) is ErrorCode.NONE
        for n in range(4):
            assert client.produce("b", batch(b"%d" % n * 400_000))[0] is ErrorCode.NONE
        eventually(lambda: clean_offset() > 1)

        def cut(node: Node) -> int:
            node.table.by_name("b", 0).log.truncate_to(1)
            return clean_offset()  # before the cleaner has another turn

        assert runner.call(cut) == 1


def _alter(client: Hand, topic: str, name: str, value: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=name, config_operation=0, value=value)
    wish = resource(resource_type=ConfigType.TOPIC, resource_name=topic, configs=[change])
    (answer,) = client.connection.ask(
        IncrementalAlterConfigsRequest(resources=[wish]), IncrementalAlterConfigsResponse, 1
    ).responses
    assert answer.error_code == 0
