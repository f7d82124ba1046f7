"""Delegation tokens: get, renew, end and list them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.client.admin.request_router import RequestRouter
from ottla.client.deprecation import renamed_durations, renamed_timeouts
from ottla.client.duration import Duration, seconds
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ottla.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


class Principal(NamedTuple):
    """A principal: a kind, such as User, and a name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A delegation token. `hmac` is its secret. Times are in milliseconds since 1970."""

    id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    issued_ms: int
    expires_ms: int
    expires_ms_max: int
    renewers: tuple[Principal, ...] = ()


@renamed_timeouts
class Tokens:
    """Delegation tokens, as `admin.tokens`. Every call raises Refused or TimedOut."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    @renamed_durations(lifetime_ms_max="lifetime_max")
    async def create(
        self,
        *,
        owner: Principal | None = None,
        renewers: Iterable[Principal] = (),
        lifetime_max: Duration | None = None,
        timeout: Duration | None = None,
    ) -> DelegationToken:
        """Create a token for this client or for `owner`. Without `lifetime_max` the broker decides when it expires."""
        allowed = tuple(renewers)
        kind = CreateDelegationTokenRequest.CreatableRenewers
        request = CreateDelegationTokenRequest(
            owner_principal_type=owner and owner.kind,
            owner_principal_name=owner and owner.name,
            renewers=[kind(principal_type=each.kind, principal_name=each.name) for each in allowed],
            max_lifetime_ms=_duration_ms(lifetime_max),
        )
        made = await self._router.request_one(request, CreateDelegationTokenResponse, "the token", timeout)
        times = (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
        return _token(made, times, allowed)

    @renamed_durations("period_ms", period_ms="period")
    async def renew(
        self, hmac: bytes, *, period: Duration | None = None, timeout: Duration | None = None
    ) -> int:
        """Extend a token; return when it expires, in milliseconds since 1970. By default the broker decides."""
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=_duration_ms(period))
        answer = await self._router.request_one(request, RenewDelegationTokenResponse, "the token", timeout)
        return answer.expiry_timestamp_ms

    @renamed_durations("period_ms", period_ms="period")
    async def expire(
        self, hmac: bytes, *, period: Duration | None = None, timeout: Duration | None = None
    ) -> int:
        """Let a token expire after a period, by default now; return when, in milliseconds since 1970."""
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=_duration_ms(period))
        answer = await self._router.request_one(request, ExpireDelegationTokenResponse, "the token", timeout)
        return answer.expiry_timestamp_ms

    async def describe(
        self, owners: Iterable[Principal] | None = None, *, timeout: Duration | None = None
    ) -> tuple[DelegationToken, ...]:
        """Return the tokens of all owners, or of these, that this client is allowed to see."""
        kind = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
        request = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [kind(principal_type=each.kind, principal_name=each.name) for each in owners]
        )
        answer = await self._router.request_one(
            request, DescribeDelegationTokenResponse, "the tokens", timeout
        )
        return tuple(
            _token(
                token,
                (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp),
                tuple(Principal(each.principal_type, each.principal_name) for each in token.renewers),
            )
            for token in answer.tokens
        )


def _duration_ms(duration: Duration | None) -> int:
    return -1 if duration is None else round(seconds(duration) * 1000)


def _token(said: Any, times_ms: tuple[int, int, int], renewers: tuple[Principal, ...]) -> DelegationToken:
    return DelegationToken(
        said.token_id,
        bytes(said.hmac),
        Principal(said.principal_type, said.principal_name),
        Principal(said.token_requester_principal_type, said.token_requester_principal_name),
        *times_ms,
        renewers,
    )
