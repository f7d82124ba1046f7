"""An honest client beside the fuzz, as a process of its own: it writes, reads and asks, and times every answer.

    python -m tests.fuzz.honest PORT TOPIC BROKER_PID DIRECTORY

It stops when its standard input ends, and prints one line of JSON. Time in which the kernel gave the broker or this
process no processor, as other programs had it, and time in which a `Control` was late as well, is told apart:
`held_up_ms` is what the broker and nobody else was late.
"""

import json
import select
import sys
import time
from pathlib import Path

from tests.faults.by_hand import Hand, batch, headers
from tests.fuzz.control import Control

PAUSE_S = 0.004


def run_delay_s(pid: str) -> float:
    """How long a process has been ready to run and has not been let (its main thread)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


class HonestClient:
    """Produces one record, reads it back, and asks for metadata, over one connection."""

    def __init__(self, port: int, topic: str, broker_pid: str) -> None:
        self.hand = Hand(port, seconds_max=30)
        self.topic = topic
        self.broker_pid = broker_pid
        # When each began and ended, what it was, and how long the kernel kept anybody waiting for a processor.
        self.timed: list[tuple[float, float, str, float]] = []
        self.complaints: list[str] = []
        self.next_offset = self.hand.end_offset(topic)

    def time(self, name: str, ask: object) -> object:
        """Call, and keep how long it took."""
        unfair = run_delay_s(self.broker_pid) + run_delay_s("self")
        began = time.monotonic()
        answer = ask()  # type: ignore[operator]
        ended = time.monotonic()
        unfair = run_delay_s(self.broker_pid) + run_delay_s("self") - unfair
        self.timed.append((began, ended, name, unfair))
        return answer

    def round(self) -> None:
        """One record there and back."""
        value = b"honest %d" % self.next_offset
        data = batch(value)
        code, offset = self.time("produce", lambda: self.hand.produce(self.topic, data))  # type: ignore[misc]
        if code or offset != self.next_offset:
            self.complaints.append(f"produce: {code!r} at {offset}, not {self.next_offset}")
            return
        code, found = self.time("fetch", lambda: self.hand.fetch(self.topic, offset))  # type: ignore[misc]
        if code or value not in found or next(headers(found))[0] != offset:
            self.complaints.append(f"fetch: {code!r}, {len(found)} bytes")
        self.next_offset += 1
        answer = self.time("metadata", lambda: self.hand.metadata(self.topic))
        if answer.topics[0].error_code or answer.topics[0].partitions[0].error_code:  # type: ignore[attr-defined]
            self.complaints.append(f"metadata: {answer!r}")

    def report(self, control: Control) -> dict[str, object]:
        """Figures of all that was asked."""
        if not self.timed:
            return {"complaints": ["nothing was asked"], "complaint_count": 1}
        took = sorted((ended - began) * 1000 for began, ended, _, _ in self.timed)
        held_up = sorted(
            (max(ended - began - max(unfair, control.late_within(began, ended)), 0.0) * 1000, name, began)
            for began, ended, name, unfair in self.timed
        )
        return {
            "requests": len(took),
            "p50_ms": round(took[len(took) // 2], 2),
            "p99_ms": round(took[int(len(took) * 0.99)], 2),
            "max_ms": round(took[-1], 1),
            "held_up_p99_ms": round(held_up[int(len(held_up) * 0.99)][0], 2),
            "held_up_max_ms": round(held_up[-1][0], 1),
            "slowest": [(round(took, 1), name, round(began, 2)) for took, name, began in held_up[:-6:-1]],
            "control_late_s": round(control.late_s, 2),
            "complaints": self.complaints[:5],
            "complaint_count": len(self.complaints),
        }


def main() -> None:
    port, topic, broker_pid, directory = sys.argv[1:5]
    client = HonestClient(int(port), topic, broker_pid)
    with Control(Path(directory)) as control:
        try:
            while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
                client.round()
        except Exception as error:  # noqa: BLE001  # whatever it is, the report says it
            client.complaints.append(f"gave up: {error!r}")
    print(json.dumps(client.report(control)))


if __name__ == "__main__":
    main()
