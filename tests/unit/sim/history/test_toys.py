"""The checker names exactly what is wrong with a broker, and finds nothing wrong with one that keeps its word."""

import random
from pathlib import Path

import pytest

from ottla.sim.__main__ import main
from ottla.sim.history.op import Op
from ottla.sim.history.recorder import Recorder
from ottla.sim.history.verdict import Verdict, judge
from ottla.sim.history.workload import Process
from tests.unit.sim.history.toy import BUGS, Broker, ToyClient

KEYS = ("a-0", "a-1", "b-0")
STEPS = 800


def history(seed: int, bug: str | None) -> list[str]:
    """Lines of a history, made by the workload on a toy."""
    chance = random.Random(seed)
    broker = Broker(KEYS, chance.randrange, bug)
    lines: list[str] = []
    recorder = Recorder(lines.append, iter(range(10**9)).__next__)
    processes = [
        Process(
            number, lambda: ToyClient(broker), KEYS, recorder, chance.randrange, transacts=number % 2 == 1
        )
        for number in range(5)
    ]
    busy: set[int] = set()

    def step() -> None:
        process = chance.choice([each for each in processes if each.number not in busy])
        busy.add(process.number)
        process.step()
        busy.discard(process.number)

    def meanwhile() -> None:
        if len(busy) < 2 and chance.random() < 0.5:
            step()

    broker.meanwhile = meanwhile
    for _ in range(STEPS):
        step()
    broker.healed = True
    broker.gap.clear()
    for _ in range(50):  # so that there is something to be read behind what was lost
        step()
    patience = iter(range(10_000))
    processes[0].read_all(lambda: next(patience) > 500)
    return lines


def verdict(seed: int, bug: str | None) -> Verdict:
    return judge(map(Op.from_line, history(seed, bug)))


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_wrong_with_a_broker_that_keeps_its_word(seed: int) -> None:
    found = verdict(seed, None)
    assert found.is_sound, str(found)
    assert found.counts["values acknowledged"] > 500
    assert found.counts["txn fail"] > 5
    assert found.counts["reads of values"] > 2 * found.counts["values acknowledged"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bug", BUGS)
def test_a_broken_broker_is_found_out(bug: str, seed: int) -> None:
    found = verdict(seed, bug)
    assert found.names == {bug}, str(found)


def test_a_file_is_judged_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for bug, status in ((None, 0), ("duplicate", 1)):
        path = tmp_path / f"{bug}.jsonl"
        path.write_text("".join(history(1, bug)))
        assert main(["history", str(path)]) == status
        told = capsys.readouterr().out
        assert "values acknowledged" in told
        assert ("no anomaly" in told) == (status == 0)
        assert ("duplicate: " in told) == (status == 1)
    (tmp_path / "other").write_text('{"index": 1}\n')
    assert main(["history", str(tmp_path / "other")]) == 2
