"""What measurements are made of: latencies, speed, pace and progress, on a clock that is told the time."""

import asyncio
import io
import random

import pytest

from ottla.cli.pace import Pace
from ottla.cli.perf import consuming
from ottla.cli.perf.latencies import PERCENTILES, Latencies
from ottla.cli.perf.producing import payloads
from ottla.cli.perf.report import report
from ottla.cli.perf.speed import Speed
from ottla.cli.progress import Nothing, Progress
from ottla.client.record import Record


class ToldClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return int(self.now * 1000)


class Screen(io.StringIO):
    """A terminal, as far as it says so."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_percentiles_are_right_to_a_thousandth(seed: int) -> None:
    chance = random.Random(seed)
    values = [chance.expovariate(1 / 0.005) for _ in range(20_000)]
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    values.sort()
    for percent in PERCENTILES:
        true_us = values[max(0, -(-len(values) * percent // 100).__int__() - 1)] * 1e6
        assert latencies.percentile_us(percent) == pytest.approx(true_us, rel=0.002, abs=1.5)
    summary = latencies.summary()
    assert summary["max_ms"] == pytest.approx(values[-1] * 1000, abs=0.01)
    assert summary["average_ms"] == pytest.approx(sum(values) / len(values) * 1000, rel=0.01)
    assert list(summary) == [
        "average_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99.9_ms", "p99.99_ms", "max_ms",
    ]  # fmt: skip


def test_nothing_measured_is_nothing_said() -> None:
    assert Latencies().summary() == {}
    assert Latencies().percentile_us(50) == 0


def test_speed_is_since_the_beginning_and_lately() -> None:
    clock = ToldClock()
    speed = Speed(clock)
    speed.records, speed.bytes = 1000, 1024 * 1024
    clock.now += 2
    assert speed.lately() == "500 records/s, 512.0 KiB/s"
    clock.now += 2
    assert speed.lately() == "0 records/s, 0 B/s"
    assert speed.summary() == {
        "records": 1000,
        "bytes": 1048576,
        "seconds": 4.0,
        "records_per_second": 250.0,
        "bytes_per_second": 262144.0,
    }


def test_a_pace_is_kept() -> None:
    clock = ToldClock()
    pace = Pace(100, clock)
    waited = 0.0
    for _ in range(101):
        seconds = pace.take()
        waited += seconds
        clock.now += seconds
    assert waited == pytest.approx(1.0, abs=0.02)


def test_what_was_missed_is_not_made_up_for() -> None:
    clock = ToldClock()
    pace = Pace(100, clock)
    clock.now += 60
    free = 0
    while not pace.take():
        free += 1
    assert free <= 12


def test_a_bar_on_a_terminal() -> None:
    clock, screen = ToldClock(), Screen()
    progress = Progress(200, screen, clock, columns=80)
    progress.show(50, "10 records/s")
    assert screen.getvalue() == "\r\x1b[K[######..................]  25 %  10 records/s"
    progress.show(60, "too soon")
    assert "too soon" not in screen.getvalue()
    clock.now += 10
    assert progress.is_due()
    progress.show(100, "10 records/s")
    assert screen.getvalue().endswith("\r\x1b[K[############............]  50 %  10 records/s  10.0 s left")
    progress.close()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_bar_fits_the_terminal() -> None:
    screen = Screen()
    Progress(200, screen, ToldClock(), columns=30).show(50, "x" * 100)
    assert len(screen.getvalue()) == len("\r\x1b[K") + 29


def test_lines_elsewhere() -> None:
    clock, log = ToldClock(), io.StringIO()
    progress = Progress(2000, log, clock)
    progress.show(10, "too soon")
    clock.now += 5
    progress.show(1500, "300 records/s")
    clock.now += 5
    Progress(None, log, clock).show(7, "too soon")
    progress.show(2000, "100 records/s")
    progress.close()
    assert log.getvalue() == "1,500 (75 %), 300 records/s\n2,000 (100 %), 100 records/s\n"


def test_payloads_have_their_size_and_differ() -> None:
    for size in (0, 1, 100, 10_000):
        values = payloads(size)
        assert {len(each) for each in values} == {size}
    assert len(set(payloads(100))) > 50
    assert payloads(100) == payloads(100)


def test_a_report_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ToldClock()
    speed, latencies = Speed(clock), Latencies()
    report("table", speed, {"latency": latencies})
    assert capsys.readouterr().out == ""
    speed.records, speed.bytes = 1000, 4096
    clock.now += 2
    latencies.add(0.00125)
    report("table", speed, {"latency": latencies})
    assert capsys.readouterr().out.splitlines() == [
        "records     1,000 in 2.0 s",
        "throughput  500 records/s, 2.0 KiB/s",
        "",
        "MS       AVERAGE   P50   P90   P95   P99  P99.9  P99.99   MAX",
        "latency     1.25  1.25  1.25  1.25  1.25   1.25    1.25  1.25",
    ]


def test_what_the_first_fetch_takes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ToldClock()
    monkeypatch.setattr(consuming, "RealClock", lambda: clock)
    record = Record("t", 0, 0, 0, None, b"v" * 1000)

    class ToldConsumer:
        """Joins in five seconds, and then has everything in one fetch of two."""

        assignment: frozenset[str] = frozenset()

        async def poll(self, **_: object) -> list[Record]:
            if not self.assignment:
                clock.now += 5
                self.assignment = frozenset({"t-0"})
                return []
            clock.now += 2
            return [record] * 10

    speed = Speed(clock)
    clock.now += 1
    asyncio.run(consuming._read(ToldConsumer(), 10, 60_000, speed, Nothing()))  # type: ignore[arg-type]
    assert (speed.records, speed.seconds) == (10, 2)
