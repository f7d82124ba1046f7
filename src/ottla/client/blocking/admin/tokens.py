"""Calls about delegation tokens, without asyncio."""

from collections.abc import Iterable

from ottla.client.admin.tokens import DelegationToken, Principal
from ottla.client.admin.tokens import Tokens as AsyncTokens
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_durations, renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Tokens(BlockingPart[AsyncTokens]):
    """Delegation tokens, as `admin.tokens`. Every call raises Refused or TimedOut."""

    @renamed_durations(lifetime_ms_max="lifetime_max")
    def create(
        self,
        *,
        owner: Principal | None = None,
        renewers: Iterable[Principal] = (),
        lifetime_max: Duration | None = None,
        timeout: Duration | None = None,
    ) -> DelegationToken:
        """Create a token for this client or for `owner`. Without `lifetime_max` the broker decides when it expires."""
        return self._run(
            self._part.create(owner=owner, renewers=renewers, lifetime_max=lifetime_max, timeout=timeout)
        )

    @renamed_durations("period_ms", period_ms="period")
    def renew(self, hmac: bytes, *, period: Duration | None = None, timeout: Duration | None = None) -> int:
        """Extend a token; return when it expires, in milliseconds since 1970. By default the broker decides."""
        return self._run(self._part.renew(hmac, period=period, timeout=timeout))

    @renamed_durations("period_ms", period_ms="period")
    def expire(self, hmac: bytes, *, period: Duration | None = None, timeout: Duration | None = None) -> int:
        """Let a token expire after a period, by default now; return when, in milliseconds since 1970."""
        return self._run(self._part.expire(hmac, period=period, timeout=timeout))

    def describe(
        self, owners: Iterable[Principal] | None = None, *, timeout: Duration | None = None
    ) -> tuple[DelegationToken, ...]:
        """Return the tokens of all owners, or of these, that this client is allowed to see."""
        return self._run(self._part.describe(owners, timeout=timeout))
