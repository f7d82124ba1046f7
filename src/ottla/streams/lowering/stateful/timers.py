"""When the callbacks of a processor are called, as Kafka Streams' queue of punctuations has it.

    stream time   due at 0, so after the record at hand, and then at multiples of the interval
    wall clock    due an interval after it was scheduled

M1  What is due goes by the time at which it is due, of equal ones by the order in which they were scheduled, also
    what a callback schedules. Each is called once, however many intervals have passed.
M2  A cancelled schedule is called no more, from that moment on, and stays cancelled over micro-batches and restarts.
M3  Where micro-batches end changes nothing. `init` runs in each of them and makes the same schedules each time: the
    n-th of one clock and interval goes on where it was. Those that were made later are kept with their callbacks.

A kept callback may be anything that can be pickled. The processor, its context, its stores and its schedules are kept
by name in it, so that it meets those of the micro-batch in which it is called.
"""

import heapq
import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import cloudpickle

from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.stateful.store import Store

_INITIAL = b"timers"
_LATER = b"later"
_CANCELLED = "cancelled"

Callback = Callable[[int], None]


class Schedule:
    """A callback, and when it is due."""

    def __init__(self, number: int, clock: str, interval: int, callback: Callback, due: int) -> None:
        self.number = number
        self.clock = clock
        self.interval = interval
        self.callback = callback
        self.due = due
        self.active = True

    def cancel(self) -> None:
        """Let it be called no more."""
        self.active = False


class Timers:
    """All schedules of a processor."""

    def __init__(self, store: Store, now: int) -> None:
        self._store = store
        self._now = now
        self._known: list[tuple[str, int, int, bool]] = store.get(_INITIAL) or []
        self._unclaimed = list(self._known)
        self._initial: list[Schedule] = []
        self._later: list[Schedule] = []
        self._heaps: dict[str, list[tuple[int, int, Schedule]]] = {"stream": [], "wall": []}
        self._is_ready = False
        self._number = 0
        self._parts: Mapping[str, Any] = {}

    def add(self, clock: str, interval: int, callback: Callback) -> Schedule:
        """Schedule a callback."""
        due = 0 if clock == "stream" else self._now + interval
        made = Schedule(self._next(), clock, interval, callback, due)
        if self._is_ready:
            self._later.append(made)
        else:
            self._initial.append(made)
            self._go_on(made)
        self._push(made)
        return made

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _go_on(self, made: Schedule) -> None:
        for n, (clock, interval, due, active) in enumerate(self._unclaimed):
            if (clock, interval) == (made.clock, made.interval):
                made.due, made.active = due, active
                del self._unclaimed[n]
                return

    def _push(self, schedule: Schedule) -> None:
        if schedule.active:
            heapq.heappush(self._heaps[schedule.clock], (schedule.due, schedule.number, schedule))

    def ready(self, parts: Mapping[str, Any]) -> None:
        """Take note that `init` is over, and bring back what was scheduled after it in earlier micro-batches.

        `parts` are what a kept callback may refer to, by name.
        """
        self._is_ready = True
        self._parts = parts
        kept = self._store.get(_LATER)
        if kept is None:
            return
        entries, callbacks = kept
        for clock, interval, due in entries:
            made = Schedule(self._next(), clock, interval, _nothing, due)
            self._later.append(made)
            self._push(made)
        for made, callback in zip(self._later, _loaded(callbacks, self._named()), strict=True):
            made.callback = callback

    def _named(self) -> dict[str, Any]:
        schedules = {f"initial {n}": each for n, each in enumerate(self._initial)}
        schedules |= {f"later {n}": each for n, each in enumerate(self._later)}
        return {**self._parts, **schedules, _CANCELLED: _cancelled()}

    def is_due(self, clock: str, time: int) -> bool:
        """Say whether anything is due."""
        heap = self._heaps[clock]
        while heap and not heap[0][2].active:
            heapq.heappop(heap)
        return bool(heap) and heap[0][0] <= time

    def ring(self, clock: str, time: int) -> None:
        """Call what is due."""
        while self.is_due(clock, time):
            _, _, schedule = heapq.heappop(self._heaps[clock])
            missed = (time - schedule.due) // schedule.interval
            schedule.due += (missed + 1) * schedule.interval
            schedule.callback(time)
            self._push(schedule)

    def next_on_wall(self) -> int | None:
        """Return when the clock on the wall must wake the processor."""
        return min((each.due for _, _, each in self._heaps["wall"] if each.active), default=None)

    def flush(self, name: str, place: str) -> None:
        """Remember what is scheduled."""
        known = [(each.clock, each.interval, each.due, each.active) for each in self._initial]
        if known != self._known:
            self._store.put(_INITIAL, known)
        self._later = [each for each in self._later if each.active]
        if not self._later:
            if self._store.get(_LATER) is not None:
                self._store.delete(_LATER)
            return
        try:
            callbacks = _dumped([each.callback for each in self._later], self._named())
        except Exception as error:
            raise FunctionFailed(
                name,
                place,
                f"the callback of a timer that was scheduled outside of init cannot be kept: {error}"[:300],
            ) from error
        entries = [(each.clock, each.interval, each.due) for each in self._later]
        self._store.put(_LATER, (entries, callbacks))


def _nothing(time: int) -> None:
    """What stands for a callback until it is loaded."""


def _cancelled() -> Schedule:
    made = Schedule(0, "stream", 1, _nothing, 0)
    made.cancel()
    return made


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, names: Mapping[int, str]) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._names = names

    def persistent_id(self, given: Any) -> str | None:
        name = self._names.get(id(given))
        # One that is neither kept nor made by `init` will never be called again.
        return _CANCELLED if name is None and isinstance(given, Schedule) else name


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, parts: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._parts = parts

    def persistent_load(self, name: str) -> Any:
        found = self._parts.get(name)
        if found is None:
            raise pickle.UnpicklingError(f"the processor has no {name} any more")
        return found


def _dumped(callbacks: list[Callback], parts: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    pickler: Any = _Pickler(file, {id(part): name for name, part in parts.items()})
    pickler.dump(callbacks)
    return file.getvalue()


def _loaded(data: bytes, parts: Mapping[str, Any]) -> list[Callback]:
    found: list[Callback] = _Unpickler(io.BytesIO(data), parts).load()
    return found


def checked_clock(clock: str, wall_clock: bool, name: str, place: str) -> str:
    """Return the name of a clock that a processor may use."""
    if clock not in ("stream", "wall"):
        raise FunctionFailed(name, place, f"there is no clock {clock!r}: it is 'stream' or 'wall'")
    if clock == "wall" and not wall_clock:
        raise FunctionFailed(name, place, "clock='wall' needs wall_clock = True in the processor's class")
    return clock
