"""Time that only grows, whatever becomes of the wall clock."""

from ottla.world.clock import steady_ms


class SetClock:
    """Both clocks, each as it is set."""

    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_123
        self.s = 17.004

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.s


def test_steady_time_goes_on_where_the_wall_clock_is_set_back() -> None:
    clock = SetClock()
    now_ms = steady_ms(clock)
    assert now_ms() == 1_700_000_000_123
    clock.wall_ms -= 365 * 86_400_000
    clock.s += 1.5
    assert now_ms() == 1_700_000_001_623
