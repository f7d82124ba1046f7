"""Calls about subscriptions to client metrics, without asyncio."""

from collections.abc import Iterable

from ottla.client.admin.client_metrics import ClientMetrics as AsyncClientMetrics
from ottla.client.admin.client_metrics import MetricsSubscription
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class ClientMetrics(BlockingPart[AsyncClientMetrics]):
    """Subscriptions to client metrics, as `admin.client_metrics`. Every call raises Refused, TimedOut or SomeFailed."""

    def list(self, *, timeout: Duration | None = None) -> tuple[str, ...]:
        """Return the names of all subscriptions."""
        return self._run(self._part.list(timeout=timeout))

    def describe(
        self, names: str | Iterable[str], *, timeout: Duration | None = None
    ) -> dict[str, MetricsSubscription]:
        """Return subscriptions by name. One that does not exist has the default values."""
        return self._run(self._part.describe(names, timeout=timeout))

    def set(self, name: str, subscription: MetricsSubscription, *, timeout: Duration | None = None) -> None:
        """Create a subscription, or change it."""
        self._run(self._part.set(name, subscription, timeout=timeout))

    def delete(self, name: str, *, timeout: Duration | None = None) -> None:
        """Delete a subscription."""
        self._run(self._part.delete(name, timeout=timeout))
