"""Calls about access rules, without asyncio."""

from collections.abc import Iterable

from ottla.client.admin.acls import Acl, AclFilter
from ottla.client.admin.acls import Acls as AsyncAcls
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Acls(BlockingPart[AsyncAcls]):
    """Access rules, as `admin.acls`. Every call raises Refused, TimedOut or, for several rules, SomeFailed."""

    def describe(
        self, filter: AclFilter | None = None, *, timeout: Duration | None = None
    ) -> tuple[Acl, ...]:
        """Return the rules that match a filter, or all rules."""
        return self._run(self._part.describe(filter, timeout=timeout))

    def create(self, acls: Acl | Iterable[Acl], *, timeout: Duration | None = None) -> None:
        """Create rules."""
        self._run(self._part.create(acls, timeout=timeout))

    def delete(
        self, filters: AclFilter | Iterable[AclFilter], *, timeout: Duration | None = None
    ) -> dict[AclFilter, tuple[Acl, ...]]:
        """Delete the rules that match, and return them by filter."""
        return self._run(self._part.delete(filters, timeout=timeout))
