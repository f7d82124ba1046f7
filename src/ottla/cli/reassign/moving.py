"""`ottla reassign start`, `verify`, `cancel` and `list`."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from ottla.cli.amount import size_text
from ottla.cli.connection import output_form
from ottla.cli.error import FAILED, OK, CommandError
from ottla.cli.output.printer import remark, show_rows
from ottla.cli.progress import Progress
from ottla.cli.reassign.plan import Plan, read_plan
from ottla.cli.reassign.throttling import lift, throttle
from ottla.cli.running import run_admin
from ottla.cli.terminal import confirm
from ottla.client import Admin
from ottla.client.admin import PartitionDescription, Reassignment
from ottla.client.errors import ClientError
from ottla.client.record import TopicPartition

_LOOK_S = 0.5
_COLUMNS = ("topic", "partition", "state", "replicas", "wanted")
DONE, MOVING, OTHERWISE, ABSENT = "done", "moving", "otherwise", "not there"


def start_moves(options: argparse.Namespace) -> int:
    """Begin to carry a plan out, and wait for its end unless told not to."""
    plan = read_plan(options.plan)

    async def command(admin: Admin) -> int:
        current = {key: each.replicas for key, each in (await _partitions(admin, plan)).items()}
        absent = sorted(plan.keys() - current.keys())
        if absent:
            raise CommandError(f"{absent[0]} is not there")
        if options.throttle is not None:
            for id in await throttle(admin, plan, current, options.throttle):
                remark(f"broker {id} is down and gets no throttle")
        await admin.partitions.reassign(plan)
        remark(f"{len(plan)} partitions are on the move")
        if options.no_wait:
            return OK
        await _wait(admin, plan)
        if options.throttle is not None:
            await _lift_all(admin, plan)
        return _show_states(options, await _states(admin, plan))

    return run_admin(options, command)


def verify_moves(options: argparse.Namespace) -> int:
    """Print how far a plan is."""
    plan = read_plan(options.plan)

    async def command(admin: Admin) -> int:
        rows = await _states(admin, plan)
        if not options.keep_throttle and all(row["state"] != MOVING for row in rows):
            await _lift_all(admin, plan)
        return _show_states(options, rows)

    return run_admin(options, command)


def cancel_moves(options: argparse.Namespace) -> int:
    """Call moves off, once that is confirmed."""
    plan = None if options.plan is None else read_plan(options.plan)

    async def command(admin: Admin) -> int:
        moving = await admin.partitions.reassignments(plan)
        if not moving:
            remark("nothing is on the move")
        else:
            if not await confirm(f"call {len(moving)} moves off", yes=options.yes):
                return FAILED
            await admin.partitions.reassign(dict.fromkeys(moving))
            for key in sorted(moving):
                remark(f"{key} stays where it was")
        await _lift_all(admin, plan or {key: list(each.replicas) for key, each in moving.items()})
        return OK

    return run_admin(options, command)


def list_moves(options: argparse.Namespace) -> int:
    """Print what is on the move."""

    async def command(admin: Admin) -> int:
        moving = await admin.partitions.reassignments()
        rows = [
            {
                "topic": key.topic,
                "partition": key.partition,
                "replicas": list(each.replicas),
                "adding": list(each.adding),
                "removing": list(each.removing),
            }
            for key, each in sorted(moving.items())
        ]
        columns = ("topic", "partition", "replicas", "adding", "removing")
        show_rows(output_form(options), rows, columns, nothing="nothing is on the move")
        return OK

    return run_admin(options, command)


async def _partitions(admin: Admin, plan: Plan) -> dict[TopicPartition, PartitionDescription]:
    listed = await admin.topics.list(internal=True)
    names = sorted({key.topic for key in plan} & set(listed))
    described = await admin.topics.describe(names) if names else {}
    return {
        TopicPartition(topic.name, each.partition): each
        for topic in described.values()
        for each in topic.partitions
    }


async def _states(admin: Admin, plan: Plan) -> list[dict[str, Any]]:
    moving = await admin.partitions.reassignments(plan)
    found = await _partitions(admin, plan)
    rows = []
    for key, wanted in sorted(plan.items()):
        there = found.get(key)
        replicas = [] if there is None else list(there.replicas)
        state = ABSENT if there is None else MOVING if key in moving else DONE
        if state is DONE and replicas != wanted:
            state = OTHERWISE
        rows.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "state": state,
                "replicas": replicas,
                "wanted": wanted,
            }
        )
    return rows


def _show_states(options: argparse.Namespace, rows: list[dict[str, Any]]) -> int:
    show_rows(output_form(options), rows, _COLUMNS)
    return OK if all(row["state"] in (DONE, MOVING) for row in rows) else FAILED


async def _wait(admin: Admin, plan: Plan) -> None:
    """Show how much has arrived, until all has."""
    progress: Progress | None = None
    try:
        while moving := await admin.partitions.reassignments(plan):
            arrived, total = await _arrived(admin, moving)
            if progress is None:
                progress = Progress(total or None)
            facts = f"{size_text(arrived)} of {size_text(total)}, {len(moving)} partitions"
            progress.show(min(arrived, total), facts)
            await asyncio.sleep(_LOOK_S)
    finally:
        if progress is not None:
            progress.close()


async def _arrived(admin: Admin, moving: Mapping[TopicPartition, Reassignment]) -> tuple[int, int]:
    """How many bytes those who get a replica have, and will have."""
    brokers = {id for each in moving.values() for id in each.replicas}
    sizes: dict[tuple[TopicPartition, int], int] = {}
    try:
        for broker, dirs in (await admin.log_dirs.describe(brokers, moving)).items():
            for each in dirs.values():
                for key, stored in each.replicas.items():
                    sizes[key, broker] = stored.size_bytes
    except ClientError:
        return 0, 0  # a broker that does not tell is no reason to stop looking
    arrived = total = 0
    for key, move in moving.items():
        whole = max(sizes.get((key, id), 0) for id in move.replicas)
        total += whole * len(move.adding)
        arrived += sum(sizes.get((key, id), 0) for id in move.adding)
    return arrived, total


async def _lift_all(admin: Admin, plan: Plan) -> None:
    cluster = await admin.cluster.describe()
    there = await admin.topics.list(internal=True)
    topics = {key.topic for key in plan} & set(there)
    await lift(admin, topics, [each.id for each in cluster.brokers])
