"""Requests of fifty thousand entries: a decision takes time in proportion to them, whatever they say.

Each deadline is some twenty times what the decision takes on a slow machine, and far below what a decision needs that
goes over the whole request for each of its entries.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from ottla.controller.controller import Controller
from ottla.controller.view import RECORDS_MAX
from ottla.metadata.config import ConfigType
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_configs import AlterConfigsRequest
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.update_features import UpdateFeaturesRequest
from tests.unit.controller.stage import Stage, wish

R = TypeVar("R")
COUNT = 50_000
DEADLINE_S = 10
SET, APPEND, SUBTRACT = 0, 2, 3
Wish = CreateTopicsRequest.CreatableTopic
Change = IncrementalAlterConfigsRequest.AlterConfigsResource
Whole = AlterConfigsRequest.AlterConfigsResource


@pytest.fixture
def stage() -> Stage:
    stage = Stage(1)
    stage.create(wish("one", 2))
    return stage


def decide(stage: Stage, decision: Callable[[Controller, int], Decision[R]]) -> R:
    """The reply, in time; nothing is recorded."""
    before = time.process_time()
    reply = decision(stage.controller, stage.now)
    assert time.process_time() - before < DEADLINE_S
    return reply.reply


def refused(stage: Stage, decision: Callable[[Controller, int], Decision[R]]) -> str:
    """Why the request was refused as a whole, in time."""
    with pytest.raises(BrokerError) as error:
        decide(stage, decision)
    assert error.value.code == ErrorCode.POLICY_VIOLATION
    assert error.value.message is not None
    return error.value.message


TOO_LARGE = "Unable to perform excessively large batch operation."


@pytest.mark.parametrize("same", [True, False])
def test_topics_to_delete(stage: Stage, same: bool) -> None:
    names = [f"t{0 if same else number}" for number in range(COUNT)]
    state = DeleteTopicsRequest.DeleteTopicState
    ids = [
        state(name=None, topic_id=(1 if same else number + 1).to_bytes(16, "big")) for number in range(COUNT)
    ]
    request = DeleteTopicsRequest(topic_names=names, topics=ids)
    response = decide(stage, lambda controller, now: controller.delete_topics(request, 6, now))
    assert len(response.responses) == (2 if same else 2 * COUNT)


@pytest.mark.parametrize("name", ["{}", "bad name {}", "same"])
def test_topics_to_create(stage: Stage, name: str) -> None:
    topics = [Wish(name=name.format(number), num_partitions=0) for number in range(COUNT)]
    request = CreateTopicsRequest(topics=topics)
    response = decide(stage, lambda controller, now: controller.create_topics(request, now))
    assert len(response.topics) == (1 if name == "same" else COUNT)


def test_as_many_topics_as_may_be(stage: Stage) -> None:
    topics = [
        Wish(name=f"t{number}", num_partitions=1, replication_factor=1) for number in range(RECORDS_MAX)
    ]
    request = CreateTopicsRequest(topics=topics)
    assert refused(stage, lambda controller, now: controller.create_topics(request, now)) == TOO_LARGE


def test_a_topic_with_settings_that_nobody_knows(stage: Stage) -> None:
    config = Wish.CreatableTopicConfig
    long = "retention." * 3000
    topics = [
        Wish(name=f"t{number}", num_partitions=1, configs=[config(name=f"retention.m{number}", value="1")])
        for number in range(RECORDS_MAX - 1)
    ]
    topics.append(Wish(name="all", num_partitions=1))
    topics[-1].configs = [config(name=f"{long}{number}", value="1") for number in range(1000)]
    request = CreateTopicsRequest(topics=topics)
    response = decide(stage, lambda controller, now: controller.create_topics(request, now))
    assert {each.error_code for each in response.topics} == {ErrorCode.INVALID_CONFIG}


@pytest.mark.parametrize("same", [True, False])
def test_an_assignment_to_many_replicas(stage: Stage, same: bool) -> None:
    replicas = [1 if same else number for number in range(COUNT)]
    topic = Wish(name="two", num_partitions=-1, replication_factor=-1)
    topic.assignments = [Wish.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)]
    request = CreateTopicsRequest(topics=[topic])
    response = decide(stage, lambda controller, now: controller.create_topics(request, now))
    assert response.topics[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_topics_to_grow(stage: Stage) -> None:
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(topics=[topic(name=f"t{number}", count=5) for number in range(COUNT)])
    assert refused(stage, lambda controller, now: controller.create_partitions(request, now)) == TOO_LARGE
    request = CreatePartitionsRequest(topics=[topic(name="one", count=2**31 - 1, assignments=None)])
    (result,) = decide(stage, lambda controller, now: controller.create_partitions(request, now)).results
    assert result.error_code == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kind", [ConfigType.TOPIC, ConfigType.BROKER, ConfigType.GROUP])
def test_resources_to_change(stage: Stage, kind: int, same: bool) -> None:
    names = ["one" if same else f"x{number}" for number in range(COUNT)]
    one_by_one = IncrementalAlterConfigsRequest(
        resources=[Change(resource_type=kind, resource_name=name) for name in names]
    )
    response = decide(stage, lambda controller, now: controller.incremental_alter_configs(one_by_one, now))
    assert len(response.responses) == COUNT
    whole = AlterConfigsRequest(resources=[Whole(resource_type=kind, resource_name=name) for name in names])
    assert len(decide(stage, lambda controller, now: controller.alter_configs(whole, now)).responses) == COUNT


@pytest.mark.parametrize("kind", [ConfigType.TOPIC, ConfigType.BROKER, ConfigType.CLIENT_METRICS])
def test_settings_of_one_resource(stage: Stage, kind: int) -> None:
    names = [f"retention.m{number}" for number in range(COUNT)]
    name = "1" if kind == ConfigType.BROKER else "one"
    one_by_one = IncrementalAlterConfigsRequest(
        resources=[
            Change(
                resource_type=kind,
                resource_name=name,
                configs=[
                    Change.AlterableConfig(name=each, config_operation=SET, value="1") for each in names
                ],
            )
        ]
    )
    whole = AlterConfigsRequest(
        resources=[
            Whole(
                resource_type=kind,
                resource_name=name,
                configs=[Whole.AlterableConfig(name=each, value="1") for each in names],
            )
        ]
    )
    said = decide(stage, lambda c, now: c.incremental_alter_configs(one_by_one, now)).responses[0].error_code
    assert said == ErrorCode.INVALID_REQUEST
    said = decide(stage, lambda c, now: c.alter_configs(whole, now)).responses[0].error_code
    assert said == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_pieces_of_one_list(stage: Stage, operation: int) -> None:
    value = ",".join(str(number) for number in range(COUNT))
    change = Change.AlterableConfig(name="cleanup.policy", config_operation=operation, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[Change(resource_type=ConfigType.TOPIC, resource_name="one", configs=[change])]
    )
    response = decide(stage, lambda controller, now: controller.incremental_alter_configs(request, now))
    expected = ErrorCode.INVALID_CONFIG if operation == APPEND else ErrorCode.NONE
    assert response.responses[0].error_code == expected


def test_elections_and_moves(stage: Stage) -> None:
    elect = ElectLeadersRequest(
        topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="one", partitions=[0] * COUNT)]
    )
    (answer,) = decide(stage, lambda c, now: c.elect_leaders(elect, now)).replica_election_results
    assert len(answer.partition_result) == COUNT
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    moves = AlterPartitionReassignmentsRequest(
        topics=[
            topic(
                name="one",
                partitions=[
                    topic.ReassignablePartition(partition_index=0, replicas=[1]) for _ in range(COUNT)
                ],
            )
        ]
    )
    (moved,) = decide(stage, lambda c, now: c.alter_partition_reassignments(moves, now)).responses
    assert len(moved.partitions) == COUNT
    asked = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    listing = ListPartitionReassignmentsRequest(topics=[asked(name="one", partition_indexes=[0] * COUNT)])
    assert decide(stage, lambda c, now: c.list_partition_reassignments(listing, now)).topics == []


def test_features(stage: Stage) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey
    request = UpdateFeaturesRequest(
        feature_updates=[update(feature="share.version", max_version_level=1) for _ in range(COUNT)]
    )
    response = decide(stage, lambda controller, now: controller.update_features(request, 2, now))
    assert response.error_code == ErrorCode.INVALID_REQUEST
