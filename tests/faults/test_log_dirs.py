"""Directories that are cordoned (KIP-1066), or taken out of `log.dirs`: what is there stays, and no empty log leads."""

import random
from collections.abc import Iterator

import pytest

from ottla.metadata.config import ConfigType
from ottla.metadata.settings.error import SettingError
from ottla.node.node import Node
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.faults.by_hand import Hand, batch, hand
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import NodeThread
from tests.peers.deadline import eventually

A, B = "/a", "/b"
SETTINGS = {"log.dirs": f"{A},{B}", "metadata.log.dir": "/metadata", "ottla.flush": "ack"}
CORDONED = "cordoned.log.dirs"
SET, DELETE, APPEND, SUBTRACT = range(4)
NONE = ErrorCode.NONE

Answer = tuple[ErrorCode, str | None]


@pytest.fixture
def disk() -> ForgetfulDisk:
    return ForgetfulDisk()


@pytest.fixture
def runner(disk: ForgetfulDisk) -> Iterator[NodeThread]:
    running = NodeThread(disk, SETTINGS).format().start()
    try:
        yield running
    finally:
        running.abandon()


def alter(client: Hand, value: str | None, operation: int = SET) -> Answer:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=CORDONED, config_operation=operation, value=value)
    wish = resource(resource_type=ConfigType.BROKER, resource_name="1", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[wish])
    (answer,) = client.connection.ask(request, IncrementalAlterConfigsResponse, 1).responses
    return ErrorCode(answer.error_code), answer.error_message


def cordon(runner: NodeThread, client: Hand, value: str) -> None:
    """Cordon directories, and wait until the controller knows."""
    assert alter(client, value) == (NONE, None)
    paths = [A, B] if value == "*" else [each for each in value.split(",") if each]

    def known(node: Node) -> bool:
        broker = node.quorum.image.brokers[1]
        wanted = {each.identity.directory_id for each in node.table.directories if each.path in paths}
        return set(broker.cordoned or ()) == wanted

    eventually(lambda: runner.call(known), 2.0)  # at once: heartbeats come no sooner than every half second


def create(
    client: Hand, name: str, partitions: int = 1, *, assigned: int | None = None
) -> tuple[ErrorCode, str | None]:
    topic = CreateTopicsRequest.CreatableTopic
    wish = topic(name=name, num_partitions=partitions, replication_factor=1)
    if assigned is not None:
        wish.num_partitions = wish.replication_factor = -1
        wish.assignments = [topic.CreatableReplicaAssignment(partition_index=0, broker_ids=[assigned])]
    (answer,) = client.connection.ask(CreateTopicsRequest(topics=[wish]), CreateTopicsResponse, 7).topics
    return ErrorCode(answer.error_code), answer.error_message


def grow(client: Hand, name: str, partitions: int) -> Answer:
    """Ask for more partitions of a topic."""
    wish = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[wish], timeout_ms=5_000)
    (answer,) = client.connection.ask(request, CreatePartitionsResponse, 3).results
    return ErrorCode(answer.error_code), answer.error_message


def homes(runner: NodeThread, topic: str, partitions: int) -> list[str]:
    """Which directory each partition lies in."""

    def look(node: Node) -> list[str]:
        return [
            next(each.path for each in node.table.directories if (topic, number) in each.logs)
            for number in range(partitions)
        ]

    found: list[str] = runner.call(look)
    return found


def test_a_cordoned_directory_gets_no_new_partitions_and_keeps_those_it_has(runner: NodeThread) -> None:
    with hand(runner.port) as client:
        assert client.create_topic("before", 4) is NONE
        before = homes(runner, "before", 4)
        assert set(before) == {A, B}
        cordon(runner, client, A)
        assert client.create_topic("after", 6) is NONE
        assert homes(runner, "after", 6) == [B] * 6
        assert grow(client, "before", 9) == (NONE, None)
        assert homes(runner, "before", 9) == before + [B] * 5
        for number in range(4):
            assert client.produce("before", batch(b"x"), partition=number)[0] is NONE
        assert homes(runner, "before", 4) == before
        described = client.connection.ask(
            DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 5
        ).results
        assert {each.log_dir: each.is_cordoned for each in described} == {A: True, B: False}
        cordon(runner, client, "")
        assert client.create_topic("again", 4) is NONE
        assert A in homes(runner, "again", 4)


def test_a_broker_whose_directories_are_all_cordoned_is_passed_over(runner: NodeThread) -> None:
    with hand(runner.port) as client:
        for everything in (f"{A},{B}", "*"):
            cordon(runner, client, everything)
            code, message = create(client, "t")
            assert code is ErrorCode.INVALID_REPLICATION_FACTOR
            assert message is not None and "cordoned" in message
        assert create(client, "named", assigned=1) == (NONE, None), "an assignment by hand stands, as in Kafka"
        assert homes(runner, "named", 1) == [A]
        cordon(runner, client, "")
        assert client.create_topic("t", 2) is NONE


def test_a_cordon_outlives_restarts(runner: NodeThread) -> None:
    with hand(runner.port) as client:
        cordon(runner, client, A)
    runner.stop()
    runner.start()
    with hand(runner.port) as client:
        assert client.create_topic("t", 3) is NONE
        assert homes(runner, "t", 3) == [B] * 3


def test_a_cordon_in_the_properties_holds_from_the_first_topic_on(disk: ForgetfulDisk) -> None:
    with NodeThread(disk, SETTINGS | {CORDONED: B}).format() as runner, hand(runner.port) as client:
        assert client.create_topic("t", 3) is NONE
        assert homes(runner, "t", 3) == [A] * 3


def test_only_directories_of_the_broker_can_be_cordoned(runner: NodeThread) -> None:
    wrong = (
        "Invalid value /elsewhere for configuration cordoned.log.dirs: Invalid entry in cordoned.log.dirs: /elsewhere. "
        "All cordoned log dirs must be entries of log.dirs or log.dir."
    )
    several = "When cordoned.log.dirs is set to *, it must not contain other values"
    with hand(runner.port) as client:
        assert alter(client, "/elsewhere") == (ErrorCode.INVALID_REQUEST, wrong)
        assert alter(client, f"{A},/elsewhere") == (ErrorCode.INVALID_REQUEST, wrong)
        assert alter(client, f"{A},*") == (ErrorCode.INVALID_REQUEST, several)
        cordon(runner, client, A)
        assert alter(client, "*", APPEND) == (ErrorCode.INVALID_REQUEST, several)
        assert alter(client, B, APPEND) == (NONE, None)
        assert alter(client, A, SUBTRACT) == (NONE, None)
        assert alter(client, None, DELETE) == (NONE, None)
        resource = AlterConfigsRequest.AlterConfigsResource
        change = resource.AlterableConfig(name=CORDONED, value="/elsewhere")
        wish = resource(resource_type=ConfigType.BROKER, resource_name="1", configs=[change])
        (answer,) = client.connection.ask(
            AlterConfigsRequest(resources=[wish]), AlterConfigsResponse, 2
        ).responses
        assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, wrong)
    with pytest.raises(SettingError, match="All entries in cordoned.log.dirs must be present"):
        _ = NodeThread(runner.disk, SETTINGS | {CORDONED: "/elsewhere"}).settings


# A directory that is gone


def fill(runner: NodeThread, topic: str, partitions: int) -> list[int]:
    """Write a record to each partition, and return those that lie in the second directory."""
    with hand(runner.port) as client:
        assert client.create_topic(topic, partitions) is NONE
        for number in range(partitions):
            assert client.produce(topic, batch(b"kept"), partition=number) == (NONE, 0)
    eventually(lambda: runner.call(lambda node: _is_told(node, topic)))
    return [number for number, home in enumerate(homes(runner, topic, partitions)) if home == B]


def _is_told(node: Node, topic: str) -> bool:
    """Whether the controller knows where every partition lies."""
    known = {each.identity.directory_id for each in node.table.directories if each.identity}
    states = node.quorum.image.topics.by_name[topic].partitions.values()
    return all(set(state.directories) <= known for state in states)


def leaders(client: Hand, topic: str) -> dict[int, int]:
    return {each.partition_index: each.leader_id for each in client.metadata(topic).topics[0].partitions}


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "power loss"])
def test_a_replica_whose_directory_was_taken_out_is_offline_until_it_is_back(
    runner: NodeThread, disk: ForgetfulDisk, clean: bool
) -> None:
    gone = fill(runner, "t", 4)
    here = [number for number in range(4) if number not in gone]
    if clean:
        runner.stop()
    else:
        left = disk.power_loss(random.Random(7))
        runner.abandon()
        disk = left
    for _ in range(2):  # neither the first start nor the next one elects an empty log
        with NodeThread(disk, SETTINGS | {"log.dirs": A}) as less, hand(less.port) as client:
            assert leaders(client, "t") == {**dict.fromkeys(gone, -1), **dict.fromkeys(here, 1)}
            for number in gone:
                assert client.produce("t", batch(b"lost"), partition=number)[0] is not NONE
                assert not disk.exists(f"{A}/t-{number}")
            for number in here:
                assert client.produce("t", batch(b"more"), partition=number)[0] is NONE
            (word,) = [each for each in less.reports if "no directory of log.dirs" in each]
            assert f"t-{gone[0]}" in word
    with NodeThread(disk, SETTINGS) as both, hand(both.port) as client:
        assert set(leaders(client, "t").values()) == {1}
        for number in gone:
            assert b"kept" in client.read_all("t", partition=number)
            assert client.produce("t", batch(b"again"), partition=number) == (NONE, 1)


def test_where_unclean_elections_are_allowed_it_is_made_anew(
    runner: NodeThread, disk: ForgetfulDisk
) -> None:
    with hand(runner.port) as client:
        assert client.create_topic("t", 4, unclean_leader_election_enable="true") is NONE
    eventually(lambda: runner.call(lambda node: _is_told(node, "t")))
    gone = [number for number, home in enumerate(homes(runner, "t", 4)) if home == B]
    runner.stop()
    quick = {"log.dirs": A, "unclean.leader.election.interval.ms": "50"}
    with NodeThread(disk, SETTINGS | quick) as less, hand(less.port) as client:
        eventually(lambda: set(leaders(client, "t").values()) == {1})
        for number in gone:
            assert client.produce("t", batch(b"anew"), partition=number) == (NONE, 0)
