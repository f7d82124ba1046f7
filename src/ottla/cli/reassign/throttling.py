"""Throttles of a reassignment: the settings that Kafka's own tool sets, so that either lifts what the other set."""

from collections.abc import Collection, Iterable, Mapping

from ottla.cli.reassign.plan import Plan
from ottla.client import Admin
from ottla.client.admin import Resource
from ottla.client.record import TopicPartition

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
SOURCES, TARGETS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


async def throttle(
    admin: Admin, plan: Plan, current: Mapping[TopicPartition, Collection[int]], rate: int
) -> list[int]:
    """Let those who have a replica now give, and those who get one take, so much a second.

    A broker takes its rate itself, so one that is down gets none; those are returned.
    """
    there = {each.id for each in (await admin.cluster.describe()).brokers}
    named = {id for key in plan for id in (*plan[key], *current[key])}
    changes: dict[Resource, dict[str, object]] = {}
    for topic in {key.topic for key in plan}:
        keys = sorted(key for key in plan if key.topic == topic)
        sources = [f"{key.partition}:{id}" for key in keys for id in current[key]]
        targets = [f"{key.partition}:{id}" for key in keys for id in plan[key] if id not in current[key]]
        changes[Resource.topic(topic)] = {SOURCES: ",".join(sources), TARGETS: ",".join(targets)}
    for id in named & there:
        changes[Resource.broker(id)] = dict.fromkeys(RATES, rate)
    await admin.configs.alter(changes)
    return sorted(named - there)


async def lift(admin: Admin, topics: Iterable[str], brokers: Iterable[int]) -> None:
    """Have no throttles on these any more."""
    changes: dict[Resource, dict[str, object]] = {
        Resource.topic(topic): {SOURCES: None, TARGETS: None} for topic in set(topics)
    }
    changes |= {Resource.broker(id): dict.fromkeys(RATES) for id in set(brokers)}
    await admin.configs.alter(changes)
