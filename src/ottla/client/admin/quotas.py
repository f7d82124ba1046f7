"""Quotas of users, clients and addresses."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.admin.request_router import RequestRouter, at_any_broker
from ottla.client.admin.response_errors import error_of
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"


class AnyName(enum.Enum):
    """In a filter, stands for every name."""

    ANY = "any"


ANY = AnyName.ANY
_EXACT, _DEFAULT, _ANY = range(3)


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Who a quota is for: names by kind. The name None means the default of a kind."""

    names: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        return " ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in self.names)


def entity(**names: str | None) -> QuotaEntity:
    """Return an entity: `entity(user="ann", client_id=None)` is the default of all clients of user ann."""
    return QuotaEntity(tuple(sorted((kind.replace("_", "-"), name) for kind, name in names.items())))


@renamed_timeouts
class Quotas:
    """Quotas, as `admin.quotas`. Every call raises Refused, TimedOut or, for several entities, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(
        self,
        names: Mapping[str, str | AnyName | None] | None = None,
        *,
        strict: bool = False,
        timeout: Duration | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return quotas: all, or those that match names by kind ("user", "client-id", "ip").

        None matches the default, and ANY every name. With `strict`, entities with further kinds do not match.
        """
        kind = DescribeClientQuotasRequest.ComponentData
        components = [
            kind(
                entity_type=each,
                match_type=_ANY if name is ANY else _DEFAULT if name is None else _EXACT,
                match=name if isinstance(name, str) else None,
            )
            for each, name in (names or {}).items()
        ]
        answer = await self._router.request_one(
            DescribeClientQuotasRequest(components=components, strict=strict),
            DescribeClientQuotasResponse,
            "the quotas",
            timeout,
        )
        return {
            QuotaEntity(tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity))): {
                value.key: value.value for value in entry.values
            }
            for entry in answer.entries or ()
        }

    async def alter(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Set quotas by name, such as producer_byte_rate. None removes a quota."""
        kind = AlterClientQuotasRequest.EntryData

        def altered(key: QuotaEntity) -> AlterClientQuotasRequest.EntryData:
            return kind(
                entity=[kind.EntityData(entity_type=each, entity_name=name) for each, name in key.names],
                ops=[
                    kind.OpData(key=name, value=0.0 if value is None else float(value), remove=value is None)
                    for name, value in changes[key].items()
                ],
            )

        async def ask(node: int | None, keys: list[QuotaEntity]) -> dict[QuotaEntity, ClientError | None]:
            request = AlterClientQuotasRequest(
                entries=[altered(key) for key in keys], validate_only=validate_only
            )
            answer = await self._router.send(node, request, AlterClientQuotasResponse)
            outcomes: dict[QuotaEntity, ClientError | None] = {}
            for entry in answer.entries:
                key = QuotaEntity(
                    tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity))
                )
                outcomes[key] = error_of(entry, f"quotas of {key}")
            return outcomes

        await self._router.request_each(changes, at_any_broker, ask, timeout)
