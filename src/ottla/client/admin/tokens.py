"""Delegation tokens: get, renew, end and list them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.client.admin.asking import Desk
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
    """Who somebody is: User and ann, say."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token. The hmac is its secret. Times are in milliseconds since 1970."""

    id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    issued_ms: int
    expires_ms: int
    expires_ms_max: int
    renewers: tuple[Principal, ...] = ()


class Tokens:
    """Delegation tokens, as `admin.tokens`. Every call raises Refused or TimedOut."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def create(
        self,
        *,
        owner: Principal | None = None,
        renewers: Iterable[Principal] = (),
        lifetime_ms_max: int = -1,
        timeout_ms: float | None = None,
    ) -> DelegationToken:
        """Get a token, for oneself or for another; -1 leaves its longest life to the broker."""
        allowed = tuple(renewers)
        kind = CreateDelegationTokenRequest.CreatableRenewers
        request = CreateDelegationTokenRequest(
            owner_principal_type=owner and owner.kind,
            owner_principal_name=owner and owner.name,
            renewers=[kind(principal_type=each.kind, principal_name=each.name) for each in allowed],
            max_lifetime_ms=lifetime_ms_max,
        )
        made = await self._desk.one(request, CreateDelegationTokenResponse, "the token", timeout_ms)
        times = (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
        return _token(made, times, allowed)

    async def renew(self, hmac: bytes, period_ms: int = -1, *, timeout_ms: float | None = None) -> int:
        """Let a token live longer, as long as the broker likes by default; return when it will expire."""
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        answer = await self._desk.one(request, RenewDelegationTokenResponse, "the token", timeout_ms)
        return answer.expiry_timestamp_ms

    async def expire(self, hmac: bytes, period_ms: int = -1, *, timeout_ms: float | None = None) -> int:
        """Let a token expire after some time, at once by default; return when it will."""
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = await self._desk.one(request, ExpireDelegationTokenResponse, "the token", timeout_ms)
        return answer.expiry_timestamp_ms

    async def describe(
        self, owners: Iterable[Principal] | None = None, *, timeout_ms: float | None = None
    ) -> tuple[DelegationToken, ...]:
        """Return the tokens that this client may see, of all owners or of these."""
        kind = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
        request = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [kind(principal_type=each.kind, principal_name=each.name) for each in owners]
        )
        answer = await self._desk.one(request, DescribeDelegationTokenResponse, "the tokens", timeout_ms)
        return tuple(
            _token(
                token,
                (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp),
                tuple(Principal(each.principal_type, each.principal_name) for each in token.renewers),
            )
            for token in answer.tokens
        )


def _token(said: Any, times_ms: tuple[int, int, int], renewers: tuple[Principal, ...]) -> DelegationToken:
    return DelegationToken(
        said.token_id,
        bytes(said.hmac),
        Principal(said.principal_type, said.principal_name),
        Principal(said.token_requester_principal_type, said.token_requester_principal_name),
        *times_ms,
        renewers,
    )
