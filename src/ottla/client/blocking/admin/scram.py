"""Calls about SCRAM credentials, without asyncio."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.scram import NewCredential, ScramCredential, ScramMechanism
from ottla.client.admin.scram import Scram as AsyncScram
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Scram(BlockingPart[AsyncScram]):
    """SCRAM credentials, as `admin.scram`. Every call raises Refused, TimedOut or, for several users, SomeFailed."""

    def describe(
        self, users: str | Iterable[str] | None = None, *, timeout: Duration | None = None
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """Return the credentials of all users, or of these."""
        return self._run(self._part.describe(users, timeout=timeout))

    def alter(
        self,
        set: Mapping[str, NewCredential] | None = None,
        delete: Mapping[str, ScramMechanism] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> None:
        """Set credentials of some users, and delete those of others."""
        self._run(self._part.alter(set, delete, timeout=timeout))
