"""Quotas of users, clients and addresses."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.admin.answer import failure
from ottla.client.admin.asking import Desk, anywhere
from ottla.client.errors import ClientError
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"


class AnyName(enum.Enum):
    """Stands in a filter for every name."""

    ANY = "any"


ANY = AnyName.ANY
_EXACT, _DEFAULT, _ANY = range(3)


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whom a quota is for. None is the default for all who have none of their own; a kind left out does not matter."""

    names: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        return " ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in self.names)


def entity(**names: str | None) -> QuotaEntity:
    """Return whom a quota is for: `entity(user="ann", client_id=None)` is ann's default for all clients."""
    return QuotaEntity(tuple(sorted((kind.replace("_", "-"), name) for kind, name in names.items())))


class Quotas:
    """Quotas, as `admin.quotas`. Every call raises Refused, TimedOut or, about several entities, SomeFailed."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def describe(
        self,
        names: Mapping[str, str | AnyName | None] | None = None,
        *,
        strict: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return quotas: all, or those for these names by kind ("user", "client-id", "ip").

        None asks for the default, ANY for every name; `strict` leaves out what has further kinds.
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
        answer = await self._desk.one(
            DescribeClientQuotasRequest(components=components, strict=strict),
            DescribeClientQuotasResponse,
            "the quotas",
            timeout_ms,
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
        timeout_ms: float | None = None,
    ) -> None:
        """Set quotas by name ("producer_byte_rate" and the like); None takes one away."""
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
            answer = await self._desk.send(node, request, AlterClientQuotasResponse)
            outcomes: dict[QuotaEntity, ClientError | None] = {}
            for entry in answer.entries:
                key = QuotaEntity(
                    tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity))
                )
                outcomes[key] = failure(entry, f"quotas of {key}")
            return outcomes

        await self._desk.settle(changes, anywhere, ask, timeout_ms)
