"""Freezing is for workers that Spark uses again, and for their first tasks."""

import gc
from collections.abc import Iterator

import pytest

from ottla.spark import settling


@pytest.fixture(autouse=True)
def _thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(settling, "_left", 3)
    yield
    gc.unfreeze()


def test_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    counts = []
    for _ in range(5):
        settling.settle()
        counts.append(gc.get_freeze_count())
        gc.unfreeze()
    assert [count > 0 for count in counts] == [True] * 3 + [False] * 2


def test_any_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    settling.settle()
    assert gc.get_freeze_count() == 0
