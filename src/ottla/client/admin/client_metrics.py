"""Subscriptions to the metrics of clients: which clients send which metrics to the cluster, and how often."""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.client.admin.configs import Configs, Resource, ResourceKind
from ottla.client.admin.request_keys import names_of
from ottla.client.admin.request_router import RequestRouter
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@dataclass(frozen=True, slots=True)
class MetricsSubscription:
    """A subscription: prefixes of metric names, and expressions such as client_id=app.* that select clients.

    `interval_ms` is the setting interval.ms.
    """

    metrics: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    interval_ms: int = 300_000


@renamed_timeouts
class ClientMetrics:
    """Subscriptions to client metrics, as `admin.client_metrics`. Every call raises Refused, TimedOut or SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._configs = Configs(router)

    async def list(self, *, timeout: Duration | None = None) -> tuple[str, ...]:
        """Return the names of all subscriptions."""
        found = await self._configs.resources([ResourceKind.CLIENT_METRICS], timeout=timeout)
        return tuple(each.name for each in found)

    async def describe(
        self, names: str | Iterable[str], *, timeout: Duration | None = None
    ) -> dict[str, MetricsSubscription]:
        """Return subscriptions by name. One that does not exist has the default values."""
        wanted = [Resource.client_metrics(name) for name in names_of(names)]
        found = await self._configs.describe(wanted, timeout=timeout)
        described: dict[str, MetricsSubscription] = {}
        for resource, entries in found.items():
            values = {name: entry.value or "" for name, entry in entries.items()}
            described[resource.name] = MetricsSubscription(
                _listed(values.get("metrics", "")),
                _listed(values.get("match", "")),
                int(values.get("interval.ms") or 300_000),
            )
        return described

    async def set(
        self, name: str, subscription: MetricsSubscription, *, timeout: Duration | None = None
    ) -> None:
        """Create a subscription, or change it."""
        changes = {
            "metrics": subscription.metrics or None,
            "match": subscription.match or None,
            "interval.ms": subscription.interval_ms,
        }
        await self._configs.alter({Resource.client_metrics(name): changes}, timeout=timeout)

    async def delete(self, name: str, *, timeout: Duration | None = None) -> None:
        """Delete a subscription."""
        nothing = dict.fromkeys(("metrics", "match", "interval.ms"))
        await self._configs.alter({Resource.client_metrics(name): nothing}, timeout=timeout)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())
