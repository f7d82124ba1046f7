"""ListGroups, DescribeGroups and DeleteGroups, over the groups of all protocols in one partition.

A broker coordinates several partitions, so each command serves its part of a request, and the handler puts the parts
together.
"""

from collections.abc import Collection, Iterable

from ottla.groups.classic.group import ClassicGroup, Phase
from ottla.groups.description import ALL, some
from ottla.groups.group import Group
from ottla.groups.offsets import Offsets
from ottla.groups.shelf import Shelf
from ottla.replicated.decision import Decision
from ottla.replicated.steps import STEP_BYTES
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.delete_groups import DeleteGroupsResponse
from ottla.wire.messages.describe_groups import DescribeGroupsResponse
from ottla.wire.messages.list_groups import ListGroupsResponse

Listed = ListGroupsResponse.ListedGroup
Described = DescribeGroupsResponse.DescribedGroup
Deleted = DeleteGroupsResponse.DeletableGroupResult

_NOT_FOUND_SINCE = 6
# How many offsets one step removes, and how long their records are at most, or nearly.
_TOMBSTONES_MAX = 5_000
_TOMBSTONES_BYTES = 4 * STEP_BYTES
# What a group is called that is not there.
_DEAD = "Dead"


class Listing:
    """The groups of a partition, seen from outside."""

    __slots__ = ("_offsets", "_shelf")

    def __init__(self, shelf: Shelf, offsets: Offsets) -> None:
        self._shelf = shelf
        self._offsets = offsets

    def list_groups(self, states: Collection[str], types: Collection[str]) -> Decision[list[Listed]]:
        """Serve ListGroups, versions 0 to 5: groups of some states and types, in lower case, or of any."""
        found = [_listed(group) for group in self._shelf.groups.values()]
        return Decision(
            [
                each
                for each in found
                if (not states or each.group_state.lower() in states)
                and (not types or each.group_type in types)
            ]
        )

    def describe(
        self, group_ids: Iterable[str], version: int, members: slice = ALL
    ) -> Decision[list[Described]]:
        """Serve DescribeGroups, versions 0 to 6, which knows classic groups alone."""
        return Decision([self._describe(group_id, version, members) for group_id in group_ids])

    def delete(self, group_ids: Iterable[str]) -> Decision[list[Deleted]]:
        """Serve DeleteGroups, versions 0 to 3: groups go with their offsets, if nobody is in.

        The state of a share group's partitions is another coordinator's, and is to be deleted before. A group of which
        nothing is said has more offsets than one step removes: it is to be named again.
        """
        results = []
        records: list[object] = []
        for group_id in dict.fromkeys(group_ids):
            try:
                group = self._shelf.groups.get(group_id)
                if group is None:
                    raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
                group.check_delete()
            except BrokerError as error:
                results.append(Deleted(group_id=group_id, error_code=error.code))
                continue
            most = min(_TOMBSTONES_MAX, 1 + _TOMBSTONES_BYTES // (100 + len(group_id))) - len(records)
            gone = self._offsets.tombstones(group_id, max(most, 0))
            records += gone
            if len(gone) < most:
                records += group.tombstones()
                results.append(Deleted(group_id=group_id))
        return Decision(results, tuple(records), any_length=True)

    def _describe(self, group_id: str, version: int, members: slice) -> Described:
        group = self._shelf.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return _described(group, members)
        if version < _NOT_FOUND_SINCE:
            return Described(group_id=group_id, group_state=_DEAD)
        message = f"Group {group_id} not found."
        if group is not None:
            message = f"Group {group_id} is not a classic group."
        return Described(
            group_id=group_id,
            group_state=_DEAD,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=message,
        )


def _listed(group: Group) -> Listed:
    return Listed(
        group_id=group.id,
        protocol_type=group.protocol_type,
        group_state=group.state,
        group_type=group.kind.value.lower(),
    )


def _described(group: ClassicGroup, members: slice) -> Described:
    # Between two generations what members say of themselves depends on a protocol that is not chosen yet.
    protocol = group.protocol_name if group.phase is Phase.STABLE else None
    return Described(
        group_id=group.id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[
            Described.DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client.client_id,
                client_host=member.client.host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in some(group, members)
        ],
    )
