"""What a node does on its own goes by a time that only grows."""

from collections import defaultdict
from types import SimpleNamespace

from ottla.node.chores import Chores

YEAR_S = 365 * 86_400


class Clock:
    """A wall clock that may be set, and the time since the start."""

    wall_s = 1_800_000_000.0
    s = 100.0

    def now_ms(self):
        return int(self.wall_s * 1000)

    def monotonic(self):
        return self.s


class Directory:
    """Notes at what times files are removed."""

    offline = None
    path = "data"

    def __init__(self):
        self.times = []

    def remove_doomed(self, now_ms, worker):
        self.times.append(now_ms)


def test_files_go_in_time_though_the_wall_clock_is_set_back():
    clock, directory = Clock(), Directory()
    timers = SimpleNamespace(call_later=lambda delay, callback: SimpleNamespace(cancel=lambda: None))
    node = SimpleNamespace(
        world=SimpleNamespace(clock=clock, disk=None, timers=timers),
        values=defaultdict(lambda: 1),
        table=SimpleNamespace(directories=[directory]),
        quorum=SimpleNamespace(tick=None),
        roles=SimpleNamespace(shrink=None, try_again=None),
        background=None,
        report=print,
    )
    chores = Chores(node)
    chores._remove_doomed()
    clock.wall_s -= YEAR_S
    clock.s += 60
    chores._remove_doomed()
    before, after = directory.times
    assert after - before == 60_000
