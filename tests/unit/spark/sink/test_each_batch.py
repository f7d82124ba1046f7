"""`write_batch` says which batch of which query it is, and does not take two writes for one."""

from typing import Any

import pytest

from ottla.client.errors import WrongState
from ottla.spark.sink import each_batch
from ottla.spark.sink.each_batch import write_batch


class Frame:
    """As much of a DataFrame as is asked for."""

    def __init__(self, query_id: str | None = "q", run_id: str = "r1", fails: bool = False) -> None:
        self._properties = {"sql.streaming.queryId": query_id, "spark.jobGroup.id": run_id}
        self._fails = fails
        self.given: dict[str, str] = {}
        self.sparkSession = self.sparkContext = self.write = self

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)

    def format(self, name: str) -> "Frame":
        assert name == "ottla"
        return self

    def options(self, **given: str) -> "Frame":
        self.given.update(given)
        return self

    def mode(self, name: str) -> "Frame":
        assert name == "append"
        return self

    def save(self) -> None:
        if self._fails:
            raise OSError("no broker")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(each_batch, "_written", {})


def write(frame: Frame, batch_id: int = 4, **options: Any) -> dict[str, str]:
    write_batch(frame, batch_id, **options)  # type: ignore[arg-type]
    return frame.given


def test_what_is_said() -> None:
    assert write(Frame(), kafka_bootstrap_servers="b:1", topic="out", kafka_acks=None) == {
        "kafka.bootstrap.servers": "b:1",
        "topic": "out",
        "queryId": "q",
        "batchId": "4",
        "transactionalId": "ottla-q-out",
    }


def test_names_of_ones_own() -> None:
    assert write(Frame(), transactionalId="mine")["transactionalId"] == "mine"
    assert write(Frame())["transactionalId"] == "ottla-q"


def test_nothing_of_it_without_transactions() -> None:
    assert write(Frame(), guarantee="at-least-once", topic="out") == {
        "guarantee": "at-least-once",
        "topic": "out",
    }
    write(Frame(), guarantee="at-least-once", topic="out")


def test_outside_of_a_query() -> None:
    with pytest.raises(WrongState, match="no streaming query runs here\nhint: call it from foreachBatch"):
        write(Frame(query_id=None))


def test_two_writes_of_one_batch() -> None:
    write(Frame(), topic="a")
    write(Frame(), topic="b")
    write(Frame(), 5, topic="a")
    with pytest.raises(WrongState, match="batch 5 was written as ottla-q-a before\nhint: give each"):
        write(Frame(), 5, topic="a")
    write(Frame(), 5, topic="a", transactionalId="other")


def test_a_batch_again_after_a_restart() -> None:
    write(Frame(run_id="r1"))
    write(Frame(run_id="r2"))


def test_a_batch_again_after_it_failed() -> None:
    with pytest.raises(OSError, match="no broker"):
        write(Frame(fails=True))
    write(Frame())


def test_a_function_for_foreach_batch() -> None:
    frame = Frame()
    each_batch.each_batch(topic="out")(frame, 9)  # type: ignore[arg-type]
    assert frame.given["batchId"] == "9"


def test_when_it_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is asked for the first batch of a run, and after a rest; else the batch before tells."""
    asked: list[int] = []

    def planned_ms(_session: Any, _query_id: str, batch_id: int) -> int | None:
        asked.append(batch_id)
        return 100 + batch_id

    monkeypatch.setattr(each_batch, "_planned_ms", planned_ms)
    assert write(Frame(), 4)["plannedMs"] == "104"
    before_ms = each_batch._written_ms["ottla-q"]
    assert write(Frame(), 5)["plannedMs"] == str(before_ms)
    assert asked == [4]
    each_batch._written_ms["ottla-q"] -= 40_000
    assert write(Frame(), 6)["plannedMs"] == "106"
    assert write(Frame(run_id="r2"), 7)["plannedMs"] == "107"
    assert asked == [4, 6, 7]


def test_a_query_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is asked by the name that it knows."""
    asked: list[str] = []

    def planned_ms(_session: Any, query_id: str, _batch_id: int) -> int | None:
        asked.append(query_id)
        return 17

    monkeypatch.setattr(each_batch, "_planned_ms", planned_ms)
    assert write(Frame(), 4, queryId="mine")["plannedMs"] == "17"
    assert asked == ["q"]
