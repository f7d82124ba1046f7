"""The timers of a group member: heartbeat interval, session timeout, poll interval.

No clock is read here: `now` is an argument.
"""

from ottla.client.backoff import Backoff


class HeartbeatTimers:
    """The times of a member's next heartbeat, of the end of its session, and of the end of its poll interval."""

    def __init__(self, interval_s: float, session_s: float, poll_s: float, backoff: Backoff) -> None:
        self.interval_s = interval_s
        self._session_s = session_s
        self._poll_s = poll_s
        self._backoff = backoff
        self._due_at = 0.0
        self._session_ends_at = 0.0
        self._poll_due_at = 0.0

    def begin(self, now: float) -> None:
        """Start all timers."""
        self._due_at = now + self.interval_s
        self._session_ends_at = now + self._session_s
        self._poll_due_at = now + self._poll_s
        self._backoff.succeeded()

    def polled(self, now: float) -> None:
        """Handle a poll."""
        self._poll_due_at = now + self._poll_s

    def sent(self, now: float) -> None:
        """Handle a sent heartbeat."""
        self._due_at = now + self.interval_s

    def answered(self, now: float) -> None:
        """Handle the response."""
        self._session_ends_at = now + self._session_s
        self._backoff.succeeded()

    def failed(self, now: float) -> None:
        """Handle a failure. The next heartbeat is sent after a pause."""
        self._due_at = now + self._backoff.failed()

    def send_now(self, now: float) -> None:
        """Send the next heartbeat now."""
        self._due_at = now

    def is_due(self, now: float) -> bool:
        """Return whether a heartbeat is due."""
        return now >= self._due_at

    def session_over(self, now: float) -> bool:
        """Return whether session.timeout.ms is over without a response."""
        return now >= self._session_ends_at

    def poll_overdue(self, now: float) -> bool:
        """Return whether max.poll.interval.ms is over without a poll."""
        return now >= self._poll_due_at

    def wait_s(self, now: float, *, polling: bool) -> float:
        """Return the time until the next timer. The poll interval does not count during a poll."""
        due_at = min(self._due_at, self._session_ends_at)
        return max(0.0, (due_at if polling else min(due_at, self._poll_due_at)) - now)
