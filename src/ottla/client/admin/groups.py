"""Groups of every kind: list, describe, delete, remove members."""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.client.admin.group import (
    GroupDescription,
    GroupKind,
    GroupListing,
    described_classic,
    described_consumer,
    described_share,
    described_streams,
)
from ottla.client.admin.keyed_outcomes import results_or_raise
from ottla.client.admin.request_keys import names_of
from ottla.client.admin.request_router import GROUP, RequestRouter
from ottla.client.admin.response_errors import error_of
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError, SomeFailed
from ottla.wire.message import Message
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from ottla.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

_DESCRIBERS: dict[
    GroupKind, tuple[Callable[..., Message], type[Message], Callable[[Any, int], GroupDescription]]
] = {
    GroupKind.CLASSIC: (
        lambda group_ids, include_authorized_operations: DescribeGroupsRequest(
            groups=group_ids, include_authorized_operations=include_authorized_operations
        ),
        DescribeGroupsResponse,
        described_classic,
    ),
    GroupKind.CONSUMER: (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, described_consumer),
    GroupKind.SHARE: (ShareGroupDescribeRequest, ShareGroupDescribeResponse, described_share),
    GroupKind.STREAMS: (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, described_streams),
}


@renamed_timeouts
class Groups:
    """Groups, as `admin.groups`. Every call raises Refused, TimedOut or, for several groups, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def list(
        self,
        *,
        kinds: Iterable[GroupKind] = (),
        states: str | Iterable[str] = (),
        timeout: Duration | None = None,
    ) -> dict[str, GroupListing]:
        """Return groups by id: all, or those of some kinds and in some states."""
        request = ListGroupsRequest(
            states_filter=names_of(states), types_filter=[kind.value for kind in kinds]
        )

        async def ask(node: int | None, keys: list[int]) -> dict[int, ListGroupsResponse | ClientError]:
            answer = await self._router.send(node, request, ListGroupsResponse)
            return {keys[0]: error_of(answer, f"broker {node}") or answer}

        answers = await self._router.request_each(
            await self._router.brokers(timeout), self._router.at_broker, ask, timeout
        )
        listed = {
            each.group_id: GroupListing(
                each.group_id,
                # Brokers that do not tell know one kind only.
                GroupKind(each.group_type or "classic"),
                each.group_state,
                each.protocol_type,
                node,
            )
            for node, answer in answers.items()
            for each in answer.groups
        }
        return dict(sorted(listed.items()))

    async def describe(
        self,
        groups: str | Iterable[str],
        *,
        kind: GroupKind | None = None,
        operations: bool = False,
        timeout: Duration | None = None,
    ) -> dict[str, GroupDescription]:
        """Return groups with their members. The kind of the groups is looked up unless it is given."""
        wanted = names_of(groups)
        if kind is None:
            listed = await self.list(timeout=timeout)
            # The coordinator answers with an error for a group that does not exist.
            kinds = {name: listed[name].kind if name in listed else GroupKind.CLASSIC for name in wanted}
        else:
            kinds = dict.fromkeys(wanted, kind)
        results: dict[str, GroupDescription] = {}
        errors: dict[str, ClientError] = {}
        for each in dict.fromkeys(kinds.values()):
            names = [name for name in wanted if kinds[name] is each]
            try:
                results |= await self._describe(names, each, operations, timeout)
            except SomeFailed as some:
                results |= some.results
                errors |= some.errors
            except ClientError as error:
                errors |= dict.fromkeys(names, error)
        return results_or_raise({name: errors.get(name) or results[name] for name in wanted})

    async def _describe(
        self, names: Iterable[str], kind: GroupKind, operations: bool, timeout: Duration | None
    ) -> dict[str, GroupDescription]:
        make, response, read = _DESCRIBERS.get(kind, _DESCRIBERS[GroupKind.CLASSIC])

        async def ask(node: int | None, keys: list[str]) -> dict[str, GroupDescription | ClientError]:
            request = make(group_ids=keys, include_authorized_operations=operations)
            answer: Any = await self._router.send(node, request, response)
            return {
                each.group_id: error_of(each, f"group {each.group_id}")
                or read(each, -1 if node is None else node)
                for each in answer.groups
            }

        return await self._router.request_each(names, self._router.at_coordinator(GROUP), ask, timeout)

    async def delete(self, groups: str | Iterable[str], *, timeout: Duration | None = None) -> None:
        """Delete groups without members, and their offsets."""

        async def ask(node: int | None, keys: list[str]) -> dict[str, ClientError | None]:
            answer = await self._router.send(
                node, DeleteGroupsRequest(groups_names=keys), DeleteGroupsResponse
            )
            return {each.group_id: error_of(each, f"group {each.group_id}") for each in answer.results}

        await self._router.request_each(names_of(groups), self._router.at_coordinator(GROUP), ask, timeout)

    async def remove_members(
        self,
        group: str,
        members: Iterable[str] | None = None,
        *,
        instances: Iterable[str] = (),
        reason: str = "removed by an administrator",
        timeout: Duration | None = None,
    ) -> None:
        """Remove members of a classic group by their ids or by their group.instance.id, or all members."""
        kind = LeaveGroupRequest.MemberIdentity
        named = {each: kind(group_instance_id=each, reason=reason) for each in names_of(instances)}
        if members is not None:
            named |= {each: kind(member_id=each, reason=reason) for each in names_of(members)}
        elif not named:
            for each in (await self.describe(group, timeout=timeout))[group].members:
                instance = each.instance_id
                named[instance or each.id] = kind(
                    member_id="" if instance else each.id, group_instance_id=instance, reason=reason
                )

        async def ask(node: int | None, keys: list[str]) -> dict[str, ClientError | None]:
            request = LeaveGroupRequest(group_id=group, members=[named[key] for key in keys])
            answer = await self._router.send(node, request, LeaveGroupResponse)
            refusal = error_of(answer, f"group {group}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            outcomes: dict[str, ClientError | None] = {}
            for each in answer.members:
                key = each.group_instance_id or each.member_id
                outcomes[key] = error_of(each, f"member {key} of group {group}")
            return outcomes

        await self._router.request_each(named, self._router.at_coordinator_of(GROUP, group), ask, timeout)
