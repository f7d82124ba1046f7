"""Requests by API: how many, and how long they took from their last byte in to their first byte out.

The times are a histogram of Ottla's own. Kafka's dashboards ask for percentiles instead, so those are estimated from
the requests between one page and the next, with the error of a bucket that is twice as wide as the one below it.
"""

from collections.abc import Iterable, Iterator

from ottla.broker.dispatch import Route
from ottla.http.metrics.text import Family, counter, gauge, histogram

QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
_PREFIX = "kafka_network_requestmetrics_"
_COARSEST_FROM = 4  # 16 microseconds: below that a request is as good as free
_STEP = 2  # every second bucket is shown: a factor of four between bounds


class RequestTimes:
    """Sums up routes, and remembers the last page."""

    def __init__(self) -> None:
        self._before: dict[str, list[int]] = {}
        self._quantiles: dict[str, list[float]] = {}

    def families(self, routes: Iterable[Route]) -> Iterator[Family]:
        """Counts by API and version, times by API."""
        ordered = sorted(routes, key=lambda route: (route.api.key, route.version))
        requests = counter(_PREFIX + "requests_total", "Requests answered.")
        buckets: dict[str, list[int]] = {}
        seconds: dict[str, float] = {}
        for route in ordered:
            name = route.api.name
            requests.add(route.count, request=name, version=route.version)
            known = buckets.get(name)
            buckets[name] = (
                list(route.buckets) if known is None else list(map(int.__add__, known, route.buckets))
            )
            seconds[name] = seconds.get(name, 0.0) + route.seconds
        yield requests
        yield _histogram(buckets, seconds)
        times = gauge(
            _PREFIX + "totaltimems", "How long requests took, in milliseconds, since the page before."
        )
        counts = counter(_PREFIX + "totaltimems_count", "Requests answered.")
        for name, found in buckets.items():
            for quantile, ms in zip(QUANTILES, self._recent(name, found), strict=True):
                times.add(ms, request=name, quantile=quantile)
            counts.add(sum(found), request=name)
        yield times
        yield counts

    def _recent(self, name: str, found: list[int]) -> list[float]:
        before = self._before.get(name)
        fresh = found if before is None else [now - then for now, then in zip(found, before, strict=True)]
        self._before[name] = found
        if any(fresh) or name not in self._quantiles:
            self._quantiles[name] = [quantile_ms(fresh, float(quantile)) for quantile in QUANTILES]
        return self._quantiles[name]


def quantile_ms(buckets: list[int], quantile: float) -> float:
    """Estimate a quantile, where bucket n counts requests of less than 2^n and not less than 2^(n-1) microseconds."""
    left = quantile * sum(buckets)
    for number, count in enumerate(buckets):
        if count and count >= left:
            low = 1 << number - 1 if number else 0
            return (low + ((1 << number) - low) * left / count) / 1000
        left -= count
    return 0.0


def _histogram(buckets: dict[str, list[int]], seconds: dict[str, float]) -> Family:
    family = histogram("ottla_request_duration_seconds", "How long requests took.")
    for name, counts in buckets.items():
        total = 0
        for number, count in enumerate(counts):
            total += count
            if number >= _COARSEST_FROM and (number - _COARSEST_FROM) % _STEP == 0:
                family.add(total, "_bucket", request=name, le=(1 << number) / 1e6)
        family.add(sum(counts), "_bucket", request=name, le="+Inf")
        family.add(seconds[name], "_sum", request=name)
        family.add(sum(counts), "_count", request=name)
    return family
