"""Writes a history, line by line: a line is written before what it tells of begins, or after it ended."""

from collections.abc import Callable, Sequence

from ottla.sim.history.op import Deed, Kind, Op, Poll, Send, Step


class Recorder:
    """Numbers the lines, and knows how far each key reaches. Several threads need a lock around it."""

    def __init__(self, write: Callable[[str], object], now_ns: Callable[[], int]) -> None:
        self._write = write
        self._now_ns = now_ns
        self._count = 0
        self.highest: dict[str, int] = {}
        self.acknowledged = 0

    def record(
        self,
        process: int,
        kind: Kind,
        deed: Deed,
        steps: Sequence[Step] = (),
        keys: Sequence[str] = (),
        error: str | None = None,
    ) -> None:
        """Write one line."""
        op = Op(self._count, self._now_ns(), process, kind, deed, tuple(steps), tuple(keys), error)
        self._count += 1
        self._write(op.to_line() + "\n")
        if kind == "invoke":
            return
        for step in steps:
            if isinstance(step, Poll):
                for key, offset, _ in step.seen:
                    self._reached(key, offset)
            elif isinstance(step, Send) and step.offset is not None and (kind == "ok" or deed == "send"):
                self.acknowledged += 1
                self._reached(step.key, step.offset)

    def _reached(self, key: str, offset: int) -> None:
        if offset > self.highest.get(key, -1):
            self.highest[key] = offset
