"""Access rules: who may do what to which resources."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from ottla.client.admin.operation import Operation
from ottla.client.admin.request_router import RequestRouter, at_any_broker
from ottla.client.admin.response_errors import error_of
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from ottla.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


class ResourceType(enum.IntEnum):
    """The type of resource that a rule is about. The values are those of Kafka's protocol."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @classmethod
    def _missing_(cls, value: object) -> "ResourceType":
        return cls.UNKNOWN


class PatternType(enum.IntEnum):
    """How a rule names resources: LITERAL by name, PREFIXED by the beginning of the name.

    In a filter, MATCH means all rules that apply to a name.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4

    @classmethod
    def _missing_(cls, value: object) -> "PatternType":
        return cls.UNKNOWN


class Permission(enum.IntEnum):
    """Whether a rule allows an operation or denies it."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3

    @classmethod
    def _missing_(cls, value: object) -> "Permission":
        return cls.UNKNOWN


CLUSTER = "kafka-cluster"
"""The name of the one resource that is the cluster."""


@dataclass(frozen=True, slots=True)
class Acl:
    """An access rule. A principal is written as User:ann or User:*; * stands for every host or every name."""

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: Operation
    permission: Permission = Permission.ALLOW
    host: str = "*"
    pattern_type: PatternType = PatternType.LITERAL


@dataclass(frozen=True, slots=True)
class AclFilter:
    """A filter for rules. A rule matches if it is equal in every field that the filter sets."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY
    host: str | None = None
    pattern_type: PatternType = PatternType.ANY

    @classmethod
    def of(cls, acl: Acl) -> "AclFilter":
        """Return the filter that matches exactly this rule."""
        return cls(**{each.name: getattr(acl, each.name) for each in fields(cls)})


@renamed_timeouts
class Acls:
    """Access rules, as `admin.acls`. Every call raises Refused, TimedOut or, for several rules, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(
        self, filter: AclFilter | None = None, *, timeout: Duration | None = None
    ) -> tuple[Acl, ...]:
        """Return the rules that match a filter, or all rules."""
        request = DescribeAclsRequest(**_filter_fields(filter or AclFilter()))
        answer = await self._router.request_one(request, DescribeAclsResponse, "the access rules", timeout)
        return tuple(_acl(resource, each) for resource in answer.resources for each in resource.acls)

    async def create(self, acls: Acl | Iterable[Acl], *, timeout: Duration | None = None) -> None:
        """Create rules."""

        async def ask(node: int | None, keys: list[Acl]) -> dict[Acl, ClientError | None]:
            creations = [
                CreateAclsRequest.AclCreation(
                    resource_type=key.resource_type,
                    resource_name=key.resource_name,
                    resource_pattern_type=key.pattern_type,
                    principal=key.principal,
                    host=key.host,
                    operation=key.operation,
                    permission_type=key.permission,
                )
                for key in keys
            ]
            answer = await self._router.send(node, CreateAclsRequest(creations=creations), CreateAclsResponse)
            return {
                key: error_of(each, f"the rule for {key.principal}")
                for key, each in zip(keys, answer.results, strict=False)
            }

        await self._router.request_each(
            [acls] if isinstance(acls, Acl) else acls, at_any_broker, ask, timeout
        )

    async def delete(
        self, filters: AclFilter | Iterable[AclFilter], *, timeout: Duration | None = None
    ) -> dict[AclFilter, tuple[Acl, ...]]:
        """Delete the rules that match, and return them by filter."""

        async def ask(
            node: int | None, keys: list[AclFilter]
        ) -> dict[AclFilter, tuple[Acl, ...] | ClientError]:
            request = DeleteAclsRequest(
                filters=[DeleteAclsRequest.DeleteAclsFilter(**_filter_fields(key)) for key in keys]
            )
            answer = await self._router.send(node, request, DeleteAclsResponse)
            return {
                key: error_of(each, "the access rules") or _deleted(each)
                for key, each in zip(keys, answer.filter_results, strict=False)
            }

        several = [filters] if isinstance(filters, AclFilter) else filters
        return await self._router.request_each(several, at_any_broker, ask, timeout)


def _filter_fields(filter: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": filter.resource_type,
        "resource_name_filter": filter.resource_name,
        "pattern_type_filter": filter.pattern_type,
        "principal_filter": filter.principal,
        "host_filter": filter.host,
        "operation": filter.operation,
        "permission_type": filter.permission,
    }


def _deleted(found: DeleteAclsResponse.DeleteAclsFilterResult) -> tuple[Acl, ...] | ClientError:
    for each in found.matching_acls:
        refusal = error_of(each, f"the rule for {each.principal}")
        if refusal is not None:
            return refusal
    return tuple(_acl(each, each) for each in found.matching_acls)


def _acl(resource: Any, rule: Any) -> Acl:
    return Acl(
        ResourceType(resource.resource_type),
        resource.resource_name,
        rule.principal,
        Operation(rule.operation),
        Permission(rule.permission_type),
        rule.host,
        PatternType(resource.pattern_type),
    )
