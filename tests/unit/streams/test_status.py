"""The line that says how an app goes."""

import io

from ottla.streams.status import StatusLine, lag, status

PROGRESS = {
    "batchId": 12,
    "inputRowsPerSecond": 1234.4,
    "processedRowsPerSecond": 5678.9,
    "durationMs": {"triggerExecution": 310},
    "sources": [
        {"endOffset": '{"a":{"0":5,"1":7}}', "latestOffset": {"a": {"0": 10, "1": 7}, "b": {"0": 1000}}},
        {"endOffset": {"c": {"0": 1}}, "latestOffset": {"c": {"0": 1}}},
    ],
    "stateOperators": [{"numRowsTotal": 20}, {"numRowsTotal": 3}],
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class StandingClock:
    def __init__(self) -> None:
        self.now = 0.0

    def now_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now


def test_rates_lag_and_time() -> None:
    line = "app  batch 12  1,234 in/s  5,679 done/s  lag 1,005  0.31 s a batch  23 in state"
    assert status("app", PROGRESS) == line
    assert status("app", None) == "app  starting"


def test_what_is_not_known_is_not_made_up() -> None:
    assert lag({"sources": [{"endOffset": None, "latestOffset": None}]}) is None
    assert lag({"sources": [{"endOffset": "nonsense", "latestOffset": "{}"}]}) is None
    beside = {"t": {"0": 3}, "#ids": {"t": "an id"}}
    assert lag({"sources": [{"endOffset": beside, "latestOffset": {"t": {"0": 5}}}]}) == 2
    assert "lag unknown" in status("app", {"sources": [{"endOffset": {"a": 1}, "latestOffset": {"a": 1}}]})
    assert "0 in/s" in status("app", {"inputRowsPerSecond": float("nan")})


def test_on_a_terminal_the_line_stays_where_it_is() -> None:
    out = Terminal()
    line = StatusLine(out, StandingClock())
    line.show("one")
    line.show("one")
    line.show("two")
    line.aside()
    line.aside()
    assert out.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


def test_elsewhere_it_is_said_now_and_then() -> None:
    out, clock = io.StringIO(), StandingClock()
    line = StatusLine(out, clock)
    for text in ("one", "two"):
        line.show(text)
    clock.now += 11
    line.show("three")
    line.aside()
    assert out.getvalue() == "one\nthree\n"
