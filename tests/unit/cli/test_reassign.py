"""Plans of reassignment: how they read, and where they put replicas."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.error import CommandError
from ottla.cli.reassign.placing import place
from ottla.cli.reassign.plan import parse_plan, plan_document, read_plan
from ottla.cli.reassign.throttling import RATES, throttle
from ottla.client.admin import Resource
from ottla.client.admin.cluster import Broker, ClusterDescription
from ottla.client.record import TopicPartition


def test_a_plan_is_what_kafkas_tool_writes() -> None:
    plan = {TopicPartition("b", 0): [2, 1], TopicPartition("a", 1): [3]}
    document = plan_document(plan)
    assert document == {
        "version": 1,
        "partitions": [
            {"topic": "a", "partition": 1, "replicas": [3]},
            {"topic": "b", "partition": 0, "replicas": [2, 1]},
        ],
    }
    assert parse_plan(document) == plan


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"topic": "a", "partition": 0, "replicas": []}],
        [{"topic": "a", "partition": 0, "replicas": [1, 1]}],
        [{"topic": "a", "partition": 0, "replicas": [1]}] * 2,
    ],
)
def test_what_is_no_plan_is_refused(entries: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"named|replicas|twice"):
        parse_plan({"version": 1, "partitions": entries})


def test_what_may_stay_stays() -> None:
    current = {n: [n % 3 + 1, (n + 1) % 3 + 1] for n in range(9)}
    assert place(current, {1: None, 2: None, 3: None}) == current


def test_a_broker_that_goes_is_replaced_and_nothing_else_moves() -> None:
    current = {n: [n % 3 + 1, (n + 1) % 3 + 1] for n in range(9)}
    planned = place(current, {1: None, 2: None, 4: None})
    for key, before in current.items():
        assert set(planned[key]) == {4 if id == 3 else id for id in before}


def test_a_new_broker_gets_its_share() -> None:
    current = {n: [n % 3 + 1, (n + 1) % 3 + 1] for n in range(12)}
    planned = place(current, {1: None, 2: None, 3: None, 4: None})
    load = Counter(id for replicas in planned.values() for id in replicas)
    assert load == {1: 6, 2: 6, 3: 6, 4: 6}
    moved = sum(len(set(planned[key]) - set(current[key])) for key in current)
    assert moved == 6


def test_replicas_are_added_in_other_racks_and_taken_away() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    more = place({n: [1 + n % 4] for n in range(8)}, racks, 2)
    assert all(len({racks[id] for id in replicas}) == 2 for replicas in more.values())
    fewer = place(more, racks, 1)
    assert all(len(replicas) == 1 for replicas in fewer.values())


@pytest.mark.parametrize("seed", range(30))
def test_any_plan_is_sound(seed: int) -> None:
    chance = random.Random(seed)
    known = list(range(1, chance.randrange(3, 9)))
    current = {n: chance.sample(known, min(3, len(known))) for n in range(40)}
    brokers = {id: chance.choice([None, "a", "b", "c"]) for id in chance.sample(range(1, 12), 6)}
    planned = place(current, brokers)
    for key, replicas in planned.items():
        assert len(replicas) == len(set(replicas)) == len(current[key])
        assert set(replicas) <= set(brokers)
    leads = Counter(replicas[0] for replicas in planned.values())
    assert max(leads.values()) <= 2 * 40 / len(brokers)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"x": 1}', "it has no partitions"),
        ('{"partitions": [{"topic": "a"}]}', "it has no partition"),
        ("[]", "it is no JSON object"),
        ('{"version": 2, "partitions": []}', "version 2 is not known"),
    ],
)
def test_a_file_that_is_no_plan_says_what_it_lacks(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(CommandError, match=f"is no plan: {complaint}$"):
        read_plan(str(path))


class ToldAdmin:
    """An admin client of a cluster with brokers 1 and 2, that remembers what it was to alter."""

    def __init__(self) -> None:
        self.altered: dict[Resource, Any] = {}
        self.cluster = self.configs = self

    async def describe(self) -> ClusterDescription:
        return ClusterDescription("c", 1, (Broker(1, "h", 1), Broker(2, "h", 2)))

    async def alter(self, changes: dict[Resource, Any]) -> None:
        self.altered |= changes


def test_a_broker_that_is_down_gets_no_throttle() -> None:
    key, admin = TopicPartition("t", 0), ToldAdmin()
    down = asyncio.run(throttle(admin, {key: [2]}, {key: [1, 3]}, 1000))  # type: ignore[arg-type]
    assert down == [3]
    rates = dict.fromkeys(RATES, 1000)
    brokers = {resource: each for resource, each in admin.altered.items() if resource != Resource.topic("t")}
    assert brokers == {Resource.broker(1): rates, Resource.broker(2): rates}
