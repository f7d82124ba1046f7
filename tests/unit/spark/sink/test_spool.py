"""What a task leaves for the driver arrives as it was left."""

import pickle
from pathlib import Path

import pytest

from ottla.client.producer.batch import EncodedRecords
from ottla.spark.sink.encoding import Sealed
from ottla.spark.sink.spool import Folder, Spool, forget
from ottla.wire.compression import Codec


def sealed(number: int, size: int) -> Sealed:
    return Sealed("out", number, EncodedRecords(bytearray([number]) * size, number, 1, 2, Codec.LZ4))


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    return tmp_path


def arrived(spool: Spool) -> list[Sealed]:
    return list(pickle.loads(pickle.dumps(spool)).batches())


def test_small_things_travel_with_the_message(local: Path) -> None:
    batches = [sealed(1, 100), sealed(2, 50)]
    spool = Spool.of(batches, Folder.draw(), "7")
    assert spool.file is None
    assert arrived(spool) == batches
    assert list(local.iterdir()) == []


def test_large_things_lie_in_a_file(local: Path) -> None:
    batches = [sealed(number, 100_000) for number in range(1, 6)]
    folder = Folder.draw()
    spool = Spool.of(iter(batches), folder, "7")
    assert len(pickle.dumps(spool)) < 5000
    assert arrived(spool) == batches
    assert arrived(spool) == batches, "they can be asked for again"
    assert [path.name for path in (local / folder.name).iterdir()] == ["7"]
    forget({spool.folder or ""})
    assert list(local.iterdir()) == []


def test_a_task_in_another_place_sends_everything(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder.draw()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/another/executor")
    batches = [sealed(number, 100_000) for number in range(1, 6)]
    spool = Spool.of(batches, folder, "7")
    assert spool.file is None
    assert arrived(spool) == batches


def test_what_is_handed_out_may_be_written_on(local: Path) -> None:
    spool = Spool.of([sealed(1, 10)], Folder.draw(), "7")
    for batch in spool.batches():
        batch.filled.buffer[:] = b"changed"
    assert arrived(spool) == [sealed(1, 10)]


def test_no_rows(local: Path) -> None:
    assert arrived(Spool.of([], Folder.draw(), "7")) == []


def test_folders_differ(local: Path) -> None:
    assert Folder.draw() != Folder.draw()
