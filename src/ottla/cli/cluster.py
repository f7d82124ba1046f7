"""`ottla cluster info`."""

import argparse
from collections import Counter
from typing import Any

from ottla.cli.amount import size_text
from ottla.cli.connection import output_form
from ottla.cli.error import OK
from ottla.cli.output.printer import Facts, Listing, show
from ottla.cli.output.table import Column
from ottla.cli.running import run_admin
from ottla.client.admin import Admin, Quorum
from ottla.client.errors import ClientError

_BROKERS = (
    "id",
    "host",
    "port",
    "rack",
    "controller",
    "fenced",
    "leaders",
    "replicas",
    Column("shown_size", "size"),
)
_VOTERS = (Column("id", "node"), "role", Column("log_end_offset", "end"), Column("lag"))
_FEATURES = ("feature", "level", "supported")


def show_cluster(options: argparse.Namespace) -> int:
    """Print what the cluster is made of."""

    async def command(admin: Admin) -> int:
        data = await _document(admin)
        facts = {
            name: data[name] for name in ("cluster", "controller", "topics", "partitions", "under_replicated")
        }
        rows = [each | {"shown_size": _size(each["size_bytes"])} for each in data["brokers"]]
        show(
            output_form(options),
            data,
            Facts(facts),
            Listing(rows, _BROKERS),
            Listing(data["quorum"]["nodes"], _VOTERS),
            Listing(data["features"], _FEATURES),
        )
        return OK

    return run_admin(options, command)


async def _document(admin: Admin) -> dict[str, Any]:
    cluster = await admin.cluster.describe(fenced=True)
    listed = await admin.topics.list(internal=True)
    described = (await admin.topics.describe(list(listed))).values() if listed else ()
    partitions = [each for topic in described for each in topic.partitions]
    leaders = Counter(each.leader for each in partitions)
    replicas = Counter(node for each in partitions for node in each.replicas)
    sizes = await _sizes(admin, [each.id for each in cluster.brokers if not each.is_fenced])
    features = await admin.features.describe()
    # What brokers say of the controller to clients may be any broker, which passes requests on.
    quorum = await admin.cluster.quorum()
    return {
        "cluster": cluster.id,
        "controller": quorum.leader,
        "topics": len(listed),
        "partitions": len(partitions),
        "under_replicated": sum(len(each.in_sync) < len(each.replicas) for each in partitions),
        "brokers": [
            {
                "id": each.id,
                "host": each.host,
                "port": each.port,
                "rack": each.rack,
                "controller": each.id == quorum.leader,
                "fenced": each.is_fenced,
                "leaders": leaders[each.id],
                "replicas": replicas[each.id],
                "size_bytes": sizes.get(each.id),
            }
            for each in cluster.brokers
        ],
        "quorum": _quorum(quorum),
        "features": [
            {
                "feature": name,
                "level": features.finalized[name].highest if name in features.finalized else 0,
                "supported": f"{levels.lowest} to {levels.highest}",
            }
            for name, levels in sorted(features.supported.items())
        ],
    }


async def _sizes(admin: Admin, brokers: list[int]) -> dict[int, int]:
    """Return how much each broker stores, where it tells."""
    try:
        dirs = await admin.log_dirs.describe(brokers)
    except ClientError:
        return {}
    return {
        broker: sum(stored.size_bytes for each in found.values() for stored in each.replicas.values())
        for broker, found in dirs.items()
    }


def _quorum(quorum: Quorum) -> dict[str, Any]:
    end = max((each.log_end_offset for each in quorum.voters), default=0)
    nodes = [
        {
            "id": each.id,
            "role": role if each.id != quorum.leader else "leader",
            "log_end_offset": each.log_end_offset,
            "lag": max(end - each.log_end_offset, 0),
            "directory": each.directory_id,
        }
        for role, replicas in (("voter", quorum.voters), ("observer", quorum.observers))
        for each in replicas
    ]
    return {
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "nodes": nodes,
    }


def _size(size: int | None) -> str | None:
    return None if size is None else size_text(size)
