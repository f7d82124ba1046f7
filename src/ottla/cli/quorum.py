"""`ottla quorum describe`, `add-voter` and `remove-voter`."""

import argparse
import asyncio
from typing import Any

from ottla.cli.connection import output_form
from ottla.cli.error import FAILED, MISUSED, OK, CommandError
from ottla.cli.output.printer import Facts, Listing, remark, show
from ottla.cli.output.table import Column
from ottla.cli.running import run_admin
from ottla.cli.terminal import confirm
from ottla.client import Admin
from ottla.client.admin import Endpoint, Quorum, QuorumReplica
from ottla.client.errors import ClientError, Refused
from ottla.wire.errors import ErrorCode
from ottla.world.clock import RealClock

# A quorum elects a leader within some seconds.
LEADER_SECONDS = 10.0
LOOK_SECONDS = 0.5

_NODES = (
    Column("id", "node"),
    "role",
    Column("log_end_offset", "end"),
    "lag",
    Column("behind_ms", "behind ms"),
    "directory",
    Column("shown_endpoints", "endpoints"),
)


def describe_quorum(options: argparse.Namespace) -> int:
    """Print who votes and who follows along."""

    async def command(admin: Admin) -> int:
        data = document(await admin.cluster.quorum())
        facts = {name: data[name] for name in ("leader", "leader_epoch", "high_watermark")}
        rows = [each | {"shown_endpoints": " ".join(each["endpoints"])} for each in data["nodes"]]
        show(output_form(options), data, Facts(facts), Listing(rows, _NODES))
        return OK

    return run_admin(options, command)


def document(quorum: Quorum) -> dict[str, Any]:
    """The quorum as plain data; how far behind a node is, is told by the leader's clock."""
    leader = next((each for each in quorum.voters if each.id == quorum.leader), None)
    now_ms = None if leader is None else leader.last_caught_up_ms
    end = quorum.high_watermark if leader is None else leader.log_end_offset

    def row(role: str, each: QuorumReplica) -> dict[str, Any]:
        known = now_ms is not None and each.last_caught_up_ms is not None
        return {
            "id": each.id,
            "role": "leader" if each is leader else role,
            "log_end_offset": each.log_end_offset,
            "lag": max(0, end - each.log_end_offset),
            "behind_ms": max(0, now_ms - each.last_caught_up_ms) if known else None,  # type: ignore[operator]
            "directory": each.directory_id,
            "endpoints": [
                f"{place.name}://{place.host}:{place.port}" for place in quorum.endpoints.get(each.id, ())
            ],
        }

    return {
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "nodes": [
            *(row("voter", each) for each in quorum.voters),
            *(row("observer", each) for each in quorum.observers),
        ],
    }


def add_voter(options: argparse.Namespace) -> int:
    """Let an observer vote."""
    endpoints = tuple(_endpoint(text) for text in options.endpoints)

    async def command(admin: Admin) -> int:
        quorum = await admin.cluster.quorum()
        directory = options.directory or _directory(options.node, quorum.observers, "follows the quorum")
        try:
            await admin.cluster.add_voter(options.node, directory, endpoints)
        except ClientError as error:
            # A leader that gave up its role meanwhile does not know what became of it; the one that follows does.
            voted = any((each.id, each.directory_id) == (options.node, directory) for each in quorum.voters)
            again = isinstance(error, Refused) and error.code is ErrorCode.DUPLICATE_VOTER
            if voted or not (error.retriable or again) or not await _votes(admin, options.node, directory):
                raise
        remark(f"node {options.node} votes, with directory {directory}")
        return OK

    return run_admin(options, command)


async def _votes(admin: Admin, node: int, directory: str) -> bool:
    """Say whether a node votes, as soon as there is a leader who knows."""
    clock = RealClock()
    deadline = clock.monotonic() + LEADER_SECONDS
    while True:
        try:
            quorum = await admin.cluster.quorum()
        except ClientError as error:
            if not error.retriable or clock.monotonic() >= deadline:
                raise
        else:
            if any((each.id, each.directory_id) == (node, directory) for each in quorum.voters):
                return True
            if clock.monotonic() >= deadline:
                return False
        await asyncio.sleep(LOOK_SECONDS)


def remove_voter(options: argparse.Namespace) -> int:
    """Take a vote away, once that is confirmed."""

    async def command(admin: Admin) -> int:
        quorum = await admin.cluster.quorum()
        directory = options.directory or _directory(options.node, quorum.voters, "votes")
        if not await confirm(f"take the vote of node {options.node} away", yes=options.yes):
            return FAILED
        await admin.cluster.remove_voter(options.node, directory)
        remark(f"node {options.node} votes no more")
        return OK

    return run_admin(options, command)


def _directory(node: int, among: tuple[QuorumReplica, ...], what: str) -> str:
    found = [each.directory_id for each in among if each.id == node]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no node {node} {what}", "`ottla quorum describe` shows who does")
    raise CommandError(f"node {node} {what} with several directories", f"choose by --directory {found[0]}")


def _endpoint(text: str) -> Endpoint:
    name, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    if not name or not host or not port.isdecimal():
        raise CommandError(
            f"{text} is no endpoint",
            "give the listener and its address, as CONTROLLER://four.example:9093",
            exit_code=MISUSED,
        )
    return Endpoint(name, host, int(port))
