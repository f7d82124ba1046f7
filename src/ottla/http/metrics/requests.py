"""Requests of an HTTP service, by route: how many, how long, how large.

The label is the path as the table has it, so there are as many series as rows, whatever clients send.
"""

from bisect import bisect_left
from collections.abc import Iterator

from ottla.http.metrics.text import Family, counter, gauge, histogram

_BOUNDS_S = (0.001, 0.004, 0.016, 0.064, 0.256, 1.0, 4.0, 16.0)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class _Times:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BOUNDS_S) + 1)
        self.seconds = 0.0


class RequestMetrics:
    """Counts the requests of one service."""

    def __init__(self, service: str) -> None:
        self._service = service
        self.under_way = 0
        self._counts: dict[tuple[str, str, int], int] = {}
        self._times: dict[str, _Times] = {}
        self._received = 0
        self._sent = 0

    def count(
        self, *, method: str, route: str, status: int, seconds: float, received: int, sent: int
    ) -> None:
        """Count a request that is answered; a status of 0 stands for one whose client went away."""
        key = (method if method in _METHODS else "other", route, status)
        self._counts[key] = self._counts.get(key, 0) + 1
        times = self._times.setdefault(route, _Times())
        times.buckets[bisect_left(_BOUNDS_S, seconds)] += 1
        times.seconds += seconds
        self._received += received
        self._sent += sent

    def families(self) -> Iterator[Family]:
        """Everything about the requests of this service."""
        service = self._service
        requests = counter("ottla_http_requests_total", "Requests answered.")
        for (method, route, status), number in self._counts.items():
            requests.add(number, service=service, method=method, route=route, status=status)
        yield requests
        durations = histogram("ottla_http_request_duration_seconds", "How long requests took.")
        for route, times in self._times.items():
            total = 0
            for bound, number in zip((*_BOUNDS_S, "+Inf"), times.buckets, strict=True):
                total += number
                durations.add(total, "_bucket", service=service, route=route, le=bound)
            durations.add(times.seconds, "_sum", service=service, route=route)
            durations.add(total, "_count", service=service, route=route)
        yield durations
        yield gauge("ottla_http_requests_under_way", "Requests being answered.").add(
            self.under_way, service=service
        )
        yield counter("ottla_http_received_bytes_total", "Bytes of bodies received.").add(
            self._received, service=service
        )
        yield counter("ottla_http_sent_bytes_total", "Bytes of bodies sent.").add(self._sent, service=service)
