"""Calls about groups, without asyncio."""

from collections.abc import Iterable

from ottla.client.admin.group import GroupDescription, GroupKind, GroupListing
from ottla.client.admin.groups import Groups as AsyncGroups
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Groups(BlockingPart[AsyncGroups]):
    """Groups, as `admin.groups`. Every call raises Refused, TimedOut or, for several groups, SomeFailed."""

    def list(
        self,
        *,
        kinds: Iterable[GroupKind] = (),
        states: str | Iterable[str] = (),
        timeout: Duration | None = None,
    ) -> dict[str, GroupListing]:
        """Return groups by id: all, or those of some kinds and in some states."""
        return self._run(self._part.list(kinds=kinds, states=states, timeout=timeout))

    def describe(
        self,
        groups: str | Iterable[str],
        *,
        kind: GroupKind | None = None,
        operations: bool = False,
        timeout: Duration | None = None,
    ) -> dict[str, GroupDescription]:
        """Return groups with their members. The kind of the groups is looked up unless it is given."""
        return self._run(self._part.describe(groups, kind=kind, operations=operations, timeout=timeout))

    def delete(self, groups: str | Iterable[str], *, timeout: Duration | None = None) -> None:
        """Delete groups without members, and their offsets."""
        self._run(self._part.delete(groups, timeout=timeout))

    def remove_members(
        self,
        group: str,
        members: Iterable[str] | None = None,
        *,
        instances: Iterable[str] = (),
        reason: str = "removed by an administrator",
        timeout: Duration | None = None,
    ) -> None:
        """Remove members of a classic group by their ids or by their group.instance.id, or all members."""
        self._run(
            self._part.remove_members(group, members, instances=instances, reason=reason, timeout=timeout)
        )
