"""A process beside the node: restarted when it dies, left alone when it cannot start, stopped in the end."""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.node import supervision
from ottla.node.supervision import CANNOT_START, SupervisedProcess
from ottla.world.clock import RealClock

NOTES_AND = "import sys, time, signal, os\nopen(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\n"


def supervised(program: str, notes: Path, reports: list[str]) -> SupervisedProcess:
    return SupervisedProcess(
        "services", [sys.executable, "-c", NOTES_AND + program, str(notes)], RealClock(), reports.append
    )


def starts(notes: Path) -> list[int]:
    return [int(line) for line in notes.read_text().splitlines()] if notes.exists() else []


async def until(condition: Callable[[], Any]) -> None:
    while not condition():  # noqa: ASYNC110  # run() sets the deadline
        await asyncio.sleep(0.01)


def run(scenario: Any) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def test_it_is_started_again_and_later_each_time(tmp_path: Path) -> None:
    notes, reports = tmp_path / "notes", []

    async def scenario() -> None:
        process = supervised("sys.exit(3)", notes, reports)
        process.start()
        await until(lambda: len(starts(notes)) >= 4)
        await process.stop()
        count = len(starts(notes))
        await asyncio.sleep(0.2)  # nothing comes after a stop
        assert len(starts(notes)) == count

    run(scenario())
    assert "ended with 3" in reports[0] and "in 0.1 s" in reports[0]
    assert "in 0.2 s" in reports[1] and "in 0.4 s" in reports[2]


def test_a_killed_one_comes_back(tmp_path: Path) -> None:
    notes, reports = tmp_path / "notes", []

    async def scenario() -> None:
        process = supervised("time.sleep(600)", notes, reports)
        process.start()
        await until(lambda: starts(notes))
        process._signal(signal.SIGKILL)
        await until(lambda: len(starts(notes)) == 2)
        await process.stop()

    run(scenario())
    assert "ended by signal 9" in reports[0] and len(reports) == 1


def test_one_that_cannot_start_is_left_alone(tmp_path: Path) -> None:
    notes, reports = tmp_path / "notes", []

    async def scenario() -> None:
        process = supervised(f"sys.exit({CANNOT_START})", notes, reports)
        process.start()
        await until(lambda: reports)
        await asyncio.sleep(0.3)  # longer than the first delay
        await process.stop()

    run(scenario())
    assert len(starts(notes)) == 1
    assert reports == ["the services do not run; the broker goes on without them"]


def test_one_that_does_not_stop_is_ended(tmp_path: Path, monkeypatch: Any) -> None:
    notes, reports = tmp_path / "notes", []
    monkeypatch.setattr(supervision, "_STOP_S_MAX", 0.3)

    async def scenario() -> None:
        deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen(sys.argv[1], 'a').write('0\\n')\ntime.sleep(600)"
        process = supervised(deaf, notes, reports)
        process.start()
        await until(lambda: len(starts(notes)) == 2)
        await process.stop()

    run(scenario())
    assert "did not stop" in reports[0]


def test_a_program_that_is_not_there_ends_nothing(tmp_path: Path) -> None:
    reports: list[str] = []

    async def scenario() -> None:
        process = SupervisedProcess("services", [str(tmp_path / "nothing")], RealClock(), reports.append)
        process.start()
        await until(lambda: reports)
        await process.stop()

    run(scenario())
    assert "could not be started" in reports[0]
