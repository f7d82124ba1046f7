"""`ottla quorum`, `reassign` and `leader-election` on three nodes, as an operator uses them."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli.error import FAILED, MISUSED
from ottla.client import Admin
from tests.client.command_line import CommandLine
from tests.peers.cluster import Cluster, running
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer
from tests.peers.server import HOST

pytestmark = pytest.mark.long

VALUE = b"x" * 10_000


@pytest.fixture
def ottla(cluster: Cluster, tmp_path: Path) -> CommandLine:
    return CommandLine(cluster.bootstrap, tmp_path)


def fill(cluster: Cluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for _ in range(count):
        producer.produce(topic, VALUE)
    assert producer.flush(60) == 0


def replicas(cluster: Cluster, topic: str) -> dict[int, list[int]]:
    found = cluster.metadata(1, topic).topics[0].partitions
    return {each.partition_index: list(each.replica_nodes) for each in found}


def test_the_quorum_is_described(ottla: CommandLine, cluster: Cluster) -> None:
    told = ottla("quorum", "describe", "-o", "json").json
    assert told["leader"] in cluster.nodes and told["leader_epoch"] >= 1
    assert sorted((each["id"], each["role"]) for each in told["nodes"]) == sorted(
        (id, "leader" if id == told["leader"] else "voter") for id in cluster.nodes
    )
    assert all(each["lag"] <= 5 for each in told["nodes"])
    ports = {each["id"]: each["endpoints"] for each in told["nodes"]}
    assert ports == {
        id: [f"CONTROLLER://{HOST}:{node.controller_port}"] for id, node in cluster.nodes.items()
    }
    assert "leader" in ottla("quorum", "describe").out


def test_partitions_are_moved_and_the_throttle_is_lifted(
    ottla: CommandLine, cluster: Cluster, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=3, replicas=2)
    fill(cluster, topic, 600)
    planned = ottla("reassign", "plan", topic, "--brokers", "1,2", "-o", "json")
    (ottla.home / "plan.json").write_text(planned.out)
    wanted = {each["partition"]: each["replicas"] for each in planned.json["partitions"]}
    assert wanted and all(sorted(each) == [1, 2] for each in wanted.values())
    assert "partitions change" in planned.err

    begun = ottla("reassign", "start", "plan.json", "--throttle", "100kB", "--no-wait")
    assert "on the move" in begun.err
    moving = ottla("reassign", "list", "-o", "json").json
    assert {each["topic"] for each in moving} == {topic}
    states = ottla("reassign", "verify", "plan.json", "-o", "json").json
    assert "moving" in {each["state"] for each in states}
    throttled = ottla("config", "describe", f"topic/{topic}", "-o", "json").out
    assert "follower.replication.throttled.replicas" in throttled

    done = ottla("reassign", "start", "plan.json", "--throttle", "50MB")
    assert "done" in done.out
    assert {each["state"] for each in ottla("reassign", "verify", "plan.json", "-o", "json").json} == {"done"}
    moved = replicas(cluster, topic)
    assert {partition: moved[partition] for partition in wanted} == wanted
    assert ottla("reassign", "list", "-o", "json").json == []
    assert "throttled" not in ottla("config", "describe", f"topic/{topic}", "-o", "json").out
    for id in cluster.nodes:
        assert "throttled" not in ottla("config", "describe", f"broker/{id}", "-o", "json").out


def test_moves_are_called_off(ottla: CommandLine, cluster: Cluster, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=1, replicas=2)
    fill(cluster, topic, 300)
    before = replicas(cluster, topic)[0]
    new = ({1, 2, 3} - set(before)).pop()
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [new, before[0]]}]}
    (ottla.home / "plan.json").write_text(json.dumps(plan))
    ottla("reassign", "start", "plan.json", "--throttle", "10kB", "--no-wait")
    assert ottla.run("reassign", "cancel", "plan.json").code == MISUSED  # nobody can be asked
    assert "stays where it was" in ottla("reassign", "cancel", "plan.json", "--yes").err
    assert sorted(replicas(cluster, topic)[0]) == sorted(before)
    outcome = ottla.run("reassign", "verify", "plan.json")
    assert outcome.code == FAILED and "otherwise" in outcome.out
    assert "nothing is on the move" in ottla("reassign", "cancel", "--yes").err


def test_wrong_plans_are_told(ottla: CommandLine, cluster: Cluster, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=1)
    assert ottla.run("reassign", "plan", topic, "--brokers", "1,9").err.startswith(
        "error: broker 9 is not there"
    )
    assert ottla.run("reassign", "plan").code == MISUSED
    (ottla.home / "bad.json").write_text("[]")
    assert "is no plan" in ottla.run("reassign", "start", "bad.json").err
    gone = {"version": 1, "partitions": [{"topic": "nowhere", "partition": 0, "replicas": [1]}]}
    (ottla.home / "gone.json").write_text(json.dumps(gone))
    assert "nowhere-0 is not there" in ottla.run("reassign", "start", "gone.json").err
    assert "not there" in ottla.run("reassign", "verify", "gone.json").out


def test_leaders_are_elected(ottla: CommandLine, cluster: Cluster, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=3)
    assert {each["elected"] for each in ottla("leader-election", topic, "-o", "json").json} == {False}
    plan = {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": partition, "replicas": [*each[1:], each[0]]}
            for partition, each in replicas(cluster, topic).items()
        ],
    }
    (ottla.home / "order.json").write_text(json.dumps(plan))
    ottla("reassign", "start", "order.json")
    rows = ottla("leader-election", topic, "-p", "0-2", "-o", "json").json
    assert {each["elected"] for each in rows} == {True}
    preferred = {partition: each[0] for partition, each in replicas(cluster, topic).items()}
    eventually(lambda: cluster.leaders(topic) == preferred)
    assert ottla.run("leader-election").code == MISUSED
    assert ottla.run("leader-election", "nowhere").code == FAILED
    assert ottla("leader-election", topic, "--unclean", "--yes").code == 0


class Newcomer(OttlaServer):
    """A node that finds the voters of its cluster."""

    def format_command(self) -> list[str]:
        return [
            "--no-initial-controllers" if each == "--standalone" else each
            for each in super().format_command()
        ]


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[tuple[Cluster, Newcomer]]:
    """Three nodes whose voters stand in the log, and a fourth that is yet to start."""
    with running(tmp_path) as cluster:
        fourth = Newcomer(tmp_path / "node-4")
        first = cluster.nodes[1]
        fourth.cluster_id = first.cluster_id
        fourth.settings = {
            **{key: value for key, value in first.settings.items() if key != "controller.quorum.voters"},
            "node.id": "4",
            "controller.quorum.bootstrap.servers": ",".join(
                f"{HOST}:{node.controller_port}" for node in cluster.nodes.values()
            ),
        }
        try:
            yield cluster, fourth
        finally:
            fourth.kill()


def test_a_node_is_added_and_another_replaced(growing: tuple[Cluster, Newcomer], tmp_path: Path) -> None:
    cluster, fourth = growing
    ottla = CommandLine(cluster.bootstrap, tmp_path)
    eventually(
        lambda: ottla.run("quorum", "add-voter", "4", "CONTROLLER://x:1").err.startswith("error: no node 4")
    )

    async def upgrade() -> bool:
        async with Admin(cluster.bootstrap) as admin:
            try:
                await admin.features.update({"kraft.version": 1})
            except Exception:  # noqa: BLE001 - voters tell their directories a moment after the start
                return False
            return True

    eventually(lambda: asyncio.run(upgrade()), seconds_max=30)
    ottla("topic", "create", "kept", "-p", "3")
    fill(cluster, "kept", 10)
    fourth.start()

    def roles() -> dict[int, str]:
        nodes = ottla("quorum", "describe", "-o", "json").json["nodes"]
        return {each["id"]: each["role"] for each in nodes}

    eventually(lambda: roles().get(4) == "observer", seconds_max=30)
    ottla("quorum", "add-voter", "4", f"CONTROLLER://{HOST}:{fourth.controller_port}")
    assert roles()[4] == "voter"
    planned = ottla("reassign", "plan", "--all", "--brokers", "1,2,4")
    (ottla.home / "plan.json").write_text(planned.out)
    ottla("reassign", "start", "plan.json")
    ottla("quorum", "remove-voter", "3", "--yes")
    eventually(lambda: roles().get(3) in (None, "observer"))
    cluster.nodes[3].stop()
    cluster.wait_in_sync("kept", 3)
    assert {id for each in replicas(cluster, "kept").values() for id in each} == {1, 2, 4}
    assert len(ottla("consume", "kept", "-e").lines) == 10
