"""`ottla group describe`."""

import argparse
from typing import Any

from ottla.cli.bounds import bounds_of
from ottla.cli.connection import output_form
from ottla.cli.error import OK
from ottla.cli.group.progress import Standing, standings_of
from ottla.cli.output.printer import Facts, Listing, View, show
from ottla.cli.output.table import Column
from ottla.cli.position import Bounds
from ottla.cli.running import run_admin
from ottla.client import Admin
from ottla.client.admin.group import GroupDescription, Member
from ottla.client.record import TopicPartition

_OFFSETS = (
    "topic",
    "partition",
    Column("committed"),
    Column("end_offset", "end"),
    "lag",
    "member",
    "host",
)
_MEMBERS = ("member", "instance", "client_id", "host", "epoch", "partitions", "assignment")


def describe_groups(options: argparse.Namespace) -> int:
    """Print groups with offsets, lag and members."""

    async def command(admin: Admin) -> int:
        groups = await admin.groups.describe(options.groups)
        data = [await _document(admin, groups[name]) for name in options.groups]
        show(output_form(options), data, *(view for each in data for view in _views(each)))
        return OK

    return run_admin(options, command)


async def _document(admin: Admin, group: GroupDescription) -> dict[str, Any]:
    owners = {key: member for member in group.members for key in member.assignment}
    standings = await standings_of(admin, group.id, group.kind)
    keys = sorted({*standings, *owners})
    there = await admin.topics.list(internal=True)
    # What was deleted since is still in the group, and has no end any more.
    alive = [key for key in keys if key.topic in there and key.partition < there[key.topic].partitions]
    bounds = await bounds_of(admin, alive)
    return {
        "group": group.id,
        "type": group.kind.value,
        "state": group.state,
        "coordinator": group.coordinator,
        "assignor": group.assignor or None,
        "epoch": group.epoch,
        "members": [_member(each) for each in group.members],
        "offsets": [_offset(key, standings.get(key), bounds.get(key), owners.get(key)) for key in keys],
    }


def _offset(
    key: TopicPartition, standing: Standing | None, bounds: Bounds | None, owner: Member | None
) -> dict[str, Any]:
    lag = None if standing is None else standing.lag
    if lag is None and standing is not None and bounds is not None:
        lag = max(bounds.end - standing.offset, 0)
    return {
        "topic": key.topic,
        "partition": key.partition,
        "committed": standing.offset if standing else None,
        "metadata": standing.metadata if standing else None,
        "start_offset": bounds.start if bounds else None,
        "end_offset": bounds.end if bounds else None,
        "lag": lag,
        "member": owner.id if owner else None,
        "host": owner.host if owner else None,
    }


def _member(member: Member) -> dict[str, Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(member.assignment):
        topics.setdefault(topic, []).append(partition)
    found: dict[str, Any] = {
        "member": member.id,
        "instance": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "epoch": member.epoch,
        "partitions": len(member.assignment),
        "assignment": topics,
    }
    if member.tasks is not None:
        found["tasks"] = {
            name: [f"{task.subtopology}_{task.partition}" for task in sorted(getattr(member.tasks, name))]
            for name in ("active", "standby", "warmup")
        }
    return found


def _views(group: dict[str, Any]) -> list[View]:
    lags = [each["lag"] for each in group["offsets"] if each["lag"] is not None]
    facts = {name: group[name] for name in ("group", "type", "state", "coordinator", "assignor", "epoch")}
    facts = {name: value for name, value in facts.items() if value is not None}
    facts["members"] = len(group["members"])
    if lags:
        facts["lag"] = sum(lags)
    views: list[View] = [Facts(facts)]
    if group["offsets"]:
        views.append(Listing(group["offsets"], _OFFSETS))
    if group["members"]:
        rows = [
            each
            | {
                "assignment": "; ".join(
                    f"{topic}: {','.join(map(str, numbers))}" for topic, numbers in each["assignment"].items()
                )
            }
            for each in group["members"]
        ]
        views.append(Listing(rows, _MEMBERS))
    return views
