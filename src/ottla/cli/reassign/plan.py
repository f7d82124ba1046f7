"""A plan of reassignment: the JSON that Kafka's own tool reads and writes."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ottla.cli.error import CommandError
from ottla.client.record import TopicPartition

VERSION = 1
STDIN = "-"
_HINT = "`ottla reassign plan` prints one"

Plan = dict[TopicPartition, list[int]]


def read_plan(path: str) -> Plan:
    """Read a plan; CommandError says what is wrong with it."""
    try:
        text = sys.stdin.read() if path == STDIN else Path(path).read_text()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        return parse_plan(json.loads(text))
    except KeyError as error:
        raise CommandError(f"{path} is no plan: it has no {error.args[0]}", _HINT) from None
    except (ValueError, TypeError) as error:
        raise CommandError(f"{path} is no plan: {error}", _HINT) from None


def parse_plan(data: Any) -> Plan:
    """Take the places out of a plan; ValueError where there are none, or one twice."""
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    if data.get("version", VERSION) != VERSION:
        raise ValueError(f"version {data['version']} is not known")
    plan: Plan = {}
    for entry in data["partitions"]:
        key = TopicPartition(str(entry["topic"]), int(entry["partition"]))
        replicas = [int(id) for id in entry["replicas"]]
        if key in plan:
            raise ValueError(f"{key} is there twice")
        if not replicas or len(set(replicas)) < len(replicas):
            raise ValueError(f"{key} needs replicas, each on another broker")
        plan[key] = replicas
    if not plan:
        raise ValueError("no partition is named")
    return plan


def plan_document(plan: Mapping[TopicPartition, Sequence[int]]) -> dict[str, Any]:
    """A plan as data."""
    return {
        "version": VERSION,
        "partitions": [
            {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
            for key, replicas in sorted(plan.items())
        ],
    }
