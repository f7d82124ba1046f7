"""The pace of a reader of much that cannot hold all it asks for.

librdkafka reads ahead until 64 MB or 100,000 records wait for the application, and then asks for nothing for a second
(its `fetch.queue.backoff.ms`), though the application is done with them long before. The quicker the broker, the more
of the time such a reader is idle. A reader that is given records just as quickly as it takes them is never full.

How quickly that is shows in two bursts of different speed: whoever holds Q bytes and takes A a millisecond has asked
for B = Q + A·t when it is full after t milliseconds. One whose bursts are alike however long they take waits for
something else, as a program does that fetches, works, and fetches again; it is not helped by waiting longer.

Y1  Nobody is held back but who has fallen silent in the midst of much, and once only unless that was of use (FREE).
Y2  Nobody is given less than what it was seen to take, its silence counted in.
Y3  Whoever comes to the end of what there is, or asks for little, begins anew.

    NEW --silence--> TRIED --silence, B grew with t--> PACED --silence--> PACED (slower)
                       |                                 +---- second ----> PACED (quicker)
                       +----silence, B did not----> FREE
"""

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.messages.fetch import FetchResponse

BULK_BYTES = 64 << 10
_SILENCE_MS = 500.0
_BURST_BYTES_MIN = 4 << 20
_TRIAL = 0.4
_MARGIN = 0.95
_SLOWER = 0.9
_QUICKER_EACH_S = 0.01
_BEHIND_MS_MAX = 20.0


class Pace:
    """One reader, by what it asks for and when. Times are milliseconds of any clock that does not go back."""

    __slots__ = ("_before", "_began", "_bytes", "_due", "_helps", "_last", "_quicker", "_raised", "rate")

    def __init__(self, now: float) -> None:
        self.rate = 0.0  # bytes a millisecond; 0 for as quickly as can be
        self._began = self._last = self._due = self._raised = now
        self._bytes = 0
        self._before: tuple[int, float] | None = None  # bytes and milliseconds of the burst before
        self._quicker = 0.0
        self._helps: bool | None = None  # None until a second burst has shown it

    def delay(self, now: float, size_bytes: int) -> float:
        """For how many milliseconds an answer of that size is to wait."""
        if now - self._last >= _SILENCE_MS:
            self._silent(now)
        elif self.rate and now - self._raised >= 1000:
            self._quicker += _QUICKER_EACH_S
            self.rate *= 1 + self._quicker
            self._raised = now
        self._bytes += size_bytes
        if not self.rate:
            self._last = now
            return 0.0
        self._due = max(self._due, now - _BEHIND_MS_MAX) + size_bytes / self.rate
        self._last = max(now, self._due)
        return self._last - now

    def _silent(self, now: float) -> None:
        """It has asked for nothing for a while, and now goes on."""
        size_bytes, taken = self._bytes, max(1.0, self._last - self._began)
        if size_bytes < _BURST_BYTES_MIN:
            self.rate, self._before = 0.0, None
        elif self._helps is not False:
            self._adapt(size_bytes, taken, average=size_bytes / (now - self._began))
            self._before = size_bytes, taken
        self._began = self._due = self._raised = now
        self._bytes = 0
        self._quicker = 0.0

    def _adapt(self, size_bytes: int, taken: float, average: float) -> None:
        burst = size_bytes / taken
        if self._before is None:
            self.rate = max(average, burst * _TRIAL)
            return
        size_before, taken_before = self._before
        slower = self.rate * _SLOWER
        if abs(taken - taken_before) > max(taken, taken_before) / 5:
            found = (size_bytes - size_before) / (taken - taken_before)
            if average < found < burst:
                self._helps = True
                slower = found * _MARGIN
            elif self._helps is None:
                self._helps = False
                self.rate = 0.0
                return
        self.rate = max(average, slower)


def at_its_pace(
    answer: FetchResponse, size_bytes: int, wait_ms_max: int, connection: Connection, broker: Broker
) -> FetchResponse | Pending:
    """Answer a reader that has much to read, as quickly as it can take it."""
    now = broker.clock.monotonic() * 1000
    pace: Pace | None = connection.pace
    if pace is None:
        pace = connection.pace = Pace(now)
    delay = min(pace.delay(now, size_bytes), wait_ms_max)
    if delay < 1:
        return answer
    pending = Pending()
    connection.keep(pending, size_bytes)
    broker.call_later(delay / 1000, lambda: pending.resolve(answer))
    return pending
