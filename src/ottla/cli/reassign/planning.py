"""`ottla reassign plan`."""

import argparse
import json

from ottla.cli.connection import output_form
from ottla.cli.error import MISUSED, OK, CommandError
from ottla.cli.output.printer import YAML, remark
from ottla.cli.output.yaml import yaml
from ottla.cli.reassign.placing import place
from ottla.cli.reassign.plan import plan_document
from ottla.cli.running import run_admin
from ottla.client import Admin
from ottla.client.record import TopicPartition


def print_plan(options: argparse.Namespace) -> int:
    """Print a plan, and say what it would move."""
    if bool(options.topics) == options.all:
        raise CommandError("a plan for what?", "name topics, or say --all", exit_code=MISUSED)

    async def command(admin: Admin) -> int:
        cluster = await admin.cluster.describe()
        racks = {each.id: each.rack for each in cluster.brokers}
        chosen = list(racks) if options.brokers is None else _ids(options.brokers)
        absent = [id for id in chosen if id not in racks]
        if absent:
            raise CommandError(
                f"broker {absent[0]} is not there", "`ottla cluster info` lists those that are"
            )
        if options.replicas and options.replicas > len(chosen):
            raise CommandError(
                f"{options.replicas} replicas need as many brokers, and {len(chosen)} are named"
            )
        names = list(await admin.topics.list(internal=True)) if options.all else options.topics
        described = await admin.topics.describe(names) if names else {}
        current = {
            TopicPartition(topic.name, each.partition): each.replicas
            for topic in described.values()
            for each in topic.partitions
        }
        planned = place(dict(sorted(current.items())), {id: racks[id] for id in chosen}, options.replicas)
        changed = {key: replicas for key, replicas in planned.items() if tuple(replicas) != current[key]}
        moved = sum(len(set(replicas) - set(current[key])) for key, replicas in changed.items())
        remark(f"{len(changed)} of {len(current)} partitions change, {moved} replicas move")
        data = plan_document(changed)
        print(yaml(data) if output_form(options) == YAML else json.dumps(data, indent=2))
        return OK

    return run_admin(options, command)


def _ids(text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(each) for each in text.split(",")))
    except ValueError:
        raise CommandError(f"{text} does not name brokers, as 1,2,3 does", exit_code=MISUSED) from None
