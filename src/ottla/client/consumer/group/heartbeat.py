"""When a member has to say that it lives, and when it no longer does.

No clock is read here: `now` is handed in.
"""

from ottla.client.backoff import Backoff


class Heartbeat:
    """The three clocks of a member: to its next heartbeat, to the end of its session, to the end of all patience."""

    def __init__(self, interval_s: float, session_s: float, poll_s: float, backoff: Backoff) -> None:
        self.interval_s = interval_s
        self._session_s = session_s
        self._poll_s = poll_s
        self._backoff = backoff
        self._due_at = 0.0
        self._session_ends_at = 0.0
        self._poll_due_at = 0.0

    def begin(self, now: float) -> None:
        """Start all clocks."""
        self._due_at = now + self.interval_s
        self._session_ends_at = now + self._session_s
        self._poll_due_at = now + self._poll_s
        self._backoff.succeeded()

    def polled(self, now: float) -> None:
        """The application has asked for records."""
        self._poll_due_at = now + self._poll_s

    def sent(self, now: float) -> None:
        """A heartbeat has left."""
        self._due_at = now + self.interval_s

    def answered(self, now: float) -> None:
        """It was answered."""
        self._session_ends_at = now + self._session_s
        self._backoff.succeeded()

    def failed(self, now: float) -> None:
        """It was not; the next one leaves after a pause."""
        self._due_at = now + self._backoff.failed()

    def hurry(self, now: float) -> None:
        """Have the next one leave at once."""
        self._due_at = now

    def is_due(self, now: float) -> bool:
        """Say whether the next one has to leave."""
        return now >= self._due_at

    def session_over(self, now: float) -> bool:
        """Say whether the coordinator has heard nothing for so long that it must have given us up."""
        return now >= self._session_ends_at

    def poll_overdue(self, now: float) -> bool:
        """Say whether the application has not asked for records in max.poll.interval.ms."""
        return now >= self._poll_due_at

    def wait_s(self, now: float, *, polling: bool) -> float:
        """Return how long nothing has to be done; who is polling just now cannot be late with it."""
        due_at = min(self._due_at, self._session_ends_at)
        return max(0.0, (due_at if polling else min(due_at, self._poll_due_at)) - now)
