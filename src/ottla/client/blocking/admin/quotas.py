"""Calls about quotas, without asyncio."""

from collections.abc import Mapping

from ottla.client.admin.quotas import AnyName, QuotaEntity
from ottla.client.admin.quotas import Quotas as AsyncQuotas
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Quotas(BlockingPart[AsyncQuotas]):
    """Quotas, as `admin.quotas`. Every call raises Refused, TimedOut or, for several entities, SomeFailed."""

    def describe(
        self,
        names: Mapping[str, str | AnyName | None] | None = None,
        *,
        strict: bool = False,
        timeout: Duration | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return quotas: all, or those that match names by kind ("user", "client-id", "ip").

        None matches the default, and ANY every name. With `strict`, entities with further kinds do not match.
        """
        return self._run(self._part.describe(names, strict=strict, timeout=timeout))

    def alter(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Set quotas by name, such as producer_byte_rate. None removes a quota."""
        self._run(self._part.alter(changes, validate_only=validate_only, timeout=timeout))
