"""Millions of records in some kilobytes, stored as an older release did that did not look: who reads them stays small.

They stand in the files before the broker starts. It looks offsets up by time and by `-3`, and compacts, and another
client hardly notices. Before, 2.3 KB of 3 M records and one look-up took 470 MB and 4.6 s of the loop.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.metadata.config import ConfigType
from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, assemble
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.faults.bombs import MIB, many_records, sound_records
from tests.faults.by_hand import Hand, batch, hand
from tests.faults.test_bombs import Honest
from tests.faults.test_unreadable_batches import NOW, ask, placed, put, sound
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer
from tests.peers.process import resident_bytes, resident_bytes_max

BOMBS = {
    "16 M of one offset": many_records(16_000_000),
    "2 M of one offset": many_records(2_000_000),
    "2 M, and sound": sound_records(2_000_000, Codec.ZSTD),
}
SEARCHED = {kind: f"searched-{number}" for number, kind in enumerate(BOMBS)}
COMPACTED = {kind: f"compacted-{number}" for number, kind in enumerate(BOMBS)}
GROWTH_BYTES_MAX = 150 * MIB
SETTINGS = {"log.cleaner.backoff.ms": "100", "log.cleaner.enable": "true"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    with OttlaServer(tmp_path_factory.mktemp("stored"), SETTINGS) as running:
        with hand(running.port) as client:
            assert client.create_topic("honest") is ErrorCode.NONE
            assert client.produce("honest", batch(b"v"))[0] is ErrorCode.NONE
            for topic in SEARCHED.values():
                assert client.create_topic(topic, 2) is ErrorCode.NONE
                for partition in (0, 1):
                    assert client.produce(topic, batch(b"v"), partition=partition)[0] is ErrorCode.NONE
            for topic in COMPACTED.values():
                # The cleaner leaves it alone until it is told.
                assert client.create_topic(topic, cleanup_policy="compact", min_cleanable_dirty_ratio=1.0) is (
                    ErrorCode.NONE
                )
                assert client.produce(topic, batch(b"v"))[0] is ErrorCode.NONE
        running.stop()
        for kind, data in BOMBS.items():
            bad = later(placed(data, 1))
            end_offset = Batch.parse(bad).end_offset
            put(running, SEARCHED[kind], {0: sound(0, 10_000) + bad + sound(end_offset, 9_000)})
            put(running, COMPACTED[kind], {0: sound(0, 10_000) + bad, end_offset: sound(end_offset, 0)})
        running.start()
        yield running


def have_cleaned(client: Hand, topic: str) -> None:
    """Let the cleaner take a topic at once."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        resource.AlterableConfig(name=name, config_operation=0, value=value)
        for name, value in (("min.cleanable.dirty.ratio", "0.01"),)
    ]
    wish = resource(resource_type=ConfigType.TOPIC, resource_name=topic, configs=changes)
    (answer,) = client.connection.ask(
        IncrementalAlterConfigsRequest(resources=[wish]), IncrementalAlterConfigsResponse, 1
    ).responses
    assert answer.error_code == 0


def later(data: bytes) -> bytes:
    """A batch whose header names a later time than its records: who looks for that has to go through them all."""
    header = Batch.parse(data)._replace(max_timestamp=NOW + 60_000)
    return bytes(assemble(header, data[BATCH_HEADER_SIZE:]))


class Watched:
    """What a broker holds at the most while somebody reads, and what another client waits."""

    def __init__(self, server: OttlaServer) -> None:
        assert server.pid is not None
        self.pid = server.pid
        self.honest = Honest(server)

    def __enter__(self) -> "Watched":
        self.honest.__enter__()
        self.before_bytes = resident_bytes(self.pid)
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # the peak is counted anew
        return self

    def __exit__(self, *_: object) -> None:
        self.grown_bytes = resident_bytes_max(self.pid) - self.before_bytes
        self.honest.__exit__()

    def check(self) -> None:
        print(f"at most {self.grown_bytes / MIB:.0f} MB more")
        assert self.grown_bytes < GROWTH_BYTES_MAX, f"{self.grown_bytes / MIB:.0f} MB more"
        self.honest.check()


@pytest.mark.parametrize("kind", BOMBS)
def test_a_look_up_in_a_stored_bomb_is_bounded_in_memory_and_time(server: OttlaServer, kind: str) -> None:
    topic = SEARCHED[kind]
    with Watched(server) as watched, hand(server.port) as client:
        for timestamp in (NOW + 30_000, -3, NOW + 30_000, NOW - 5_000):
            mine, theirs = ask(client, topic, timestamp)
            print(kind, timestamp, mine)
            assert theirs[0] is ErrorCode.NONE
            assert mine[0] in (ErrorCode.NONE, ErrorCode.INVALID_RECORD)
            assert timestamp != NOW - 5_000 or mine == (ErrorCode.NONE, 1)
        assert ask(client, topic, NOW - 10_000)[0] == (ErrorCode.NONE, 0), "what is before it is found"
    watched.check()


def test_many_look_ups_in_stored_bombs_take_turns(server: OttlaServer) -> None:
    """Ten clients at once: one looks at a time, and memory is that of one."""
    faults: list[object] = []

    def look() -> None:
        try:
            with hand(server.port) as client:
                for topic in SEARCHED.values():
                    ask(client, topic, -3)
        except Exception as error:  # noqa: BLE001  # the test tells of it
            faults.append(error)

    with Watched(server) as watched:
        threads = [threading.Thread(target=look) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert not faults
    watched.check()


@pytest.mark.timeout(600)
def test_compaction_of_stored_bombs_is_bounded_in_memory_and_time(server: OttlaServer) -> None:
    def sizes() -> dict[str, int]:
        return {
            kind: (server.log_dir / f"{topic}-0" / f"{0:020}.log").stat().st_size
            for kind, topic in COMPACTED.items()
        }

    def checkpoint() -> str:
        path = server.log_dir / "cleaner-offset-checkpoint"
        return path.read_text() if path.exists() else ""

    printed = server.output_path.read_text
    before = sizes()
    with Watched(server) as watched, hand(server.port) as client:
        for topic in COMPACTED.values():
            have_cleaned(client, topic)
        # Of sound records the last of each key is left. One that has too many is given up by name.
        eventually(lambda: sizes()["2 M, and sound"] < before["2 M, and sound"] // 2, 240)
        too_many = COMPACTED["16 M of one offset"]
        eventually(lambda: f"cleaning {too_many}-0 failed" in printed(), 60)
        eventually(lambda: all(f"{topic} 0 " in checkpoint() for topic in COMPACTED.values() if topic != too_many), 240)
    watched.check()
    (told,) = [line for line in printed().splitlines() if "cleaning compacted" in line]
    assert "the batch at offset 1 cannot be read: it has 16000000 records" in told

