"""`ottla topic describe`."""

import argparse
from typing import Any

from ottla.cli.bounds import bounds_of
from ottla.cli.connection import output_form
from ottla.cli.error import OK
from ottla.cli.output.printer import Facts, Listing, View, show
from ottla.cli.output.table import Column
from ottla.cli.position import Bounds
from ottla.cli.running import run_admin
from ottla.client import Admin
from ottla.client.admin.configs import ConfigEntry, Resource
from ottla.client.admin.topic import TopicDescription
from ottla.client.record import TopicPartition
from ottla.metadata.settings.layers import Source

_COLUMNS = (
    "partition",
    "leader",
    Column("leader_epoch", "epoch"),
    "replicas",
    "in_sync",
    Column("start_offset", "start"),
    Column("end_offset", "end"),
    Column("records"),
)


def describe_topics(options: argparse.Namespace) -> int:
    """Print topics with partitions and settings."""

    async def command(admin: Admin) -> int:
        topics = await admin.topics.describe(options.topics)
        configs = await admin.configs.describe([Resource.topic(name) for name in options.topics])
        led = [
            TopicPartition(name, each.partition)
            for name, topic in topics.items()
            for each in topic.partitions
            if each.leader >= 0
        ]
        bounds = await bounds_of(admin, led)
        data = [_document(topics[name], configs[Resource.topic(name)], bounds) for name in options.topics]
        show(output_form(options), data, *(view for each in data for view in _views(each)))
        return OK

    return run_admin(options, command)


def _document(
    topic: TopicDescription, configs: dict[str, ConfigEntry], bounds: dict[TopicPartition, Bounds]
) -> dict[str, Any]:
    partitions = []
    for each in topic.partitions:
        known = bounds.get(TopicPartition(topic.name, each.partition))
        partitions.append(
            {
                "partition": each.partition,
                "leader": each.leader if each.leader >= 0 else None,
                "leader_epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "in_sync": list(each.in_sync),
                "offline": list(each.offline),
                "start_offset": known.start if known else None,
                "end_offset": known.end if known else None,
                "records": known.end - known.start if known else None,
            }
        )
    return {
        "name": topic.name,
        "id": topic.id,
        "internal": topic.is_internal,
        "replication": max((len(each.replicas) for each in topic.partitions), default=0),
        "settings": {
            name: each.value for name, each in configs.items() if each.source is Source.TOPIC_CONFIG
        },
        "partitions": partitions,
    }


def _views(topic: dict[str, Any]) -> list[View]:
    partitions = topic["partitions"]
    under = [each["partition"] for each in partitions if len(each["in_sync"]) < len(each["replicas"])]
    facts = {
        "topic": topic["name"],
        "id": topic["id"],
        "internal": topic["internal"],
        "partitions": len(partitions),
        "replication": topic["replication"],
        "records": sum(each["records"] or 0 for each in partitions),
    }
    if under:
        facts["under_replicated"] = under
    views: list[View] = [Facts(facts), Listing(partitions, _COLUMNS)]
    if topic["settings"]:
        rows = [{"setting": name, "value": value} for name, value in sorted(topic["settings"].items())]
        views.append(Listing(rows, ("setting", "value")))
    return views
