"""CreateTopics, DeleteTopics, CreatePartitions, and the way to the controller that they share."""

import pytest

from ottla.broker.apis.create_partitions import API as CREATE_PARTITIONS
from ottla.broker.apis.create_topics import API as CREATE_TOPICS
from ottla.broker.apis.delete_topics import API as DELETE_TOPICS
from ottla.broker.apis.metadata import API as METADATA
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest

Wish = CreateTopicsRequest.CreatableTopic
Config = Wish.CreatableTopicConfig


def creating(*names, **fields):
    return CreateTopicsRequest(
        topics=[Wish(name=name, num_partitions=2, replication_factor=1, **fields) for name in names]
    )


@pytest.mark.parametrize("version", CREATE_TOPICS.versions)
def test_a_topic_exists_when_the_answer_comes(station, version):
    (result,) = station.ask(CREATE_TOPICS, creating("t"), version).topics
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    topic = station.broker.image.topics.by_name["t"]
    assert len(topic.partitions) == 2
    assert station.table.by_name("t", 1).log.end_offset == 0
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 1)
    if version >= 7:
        assert result.topic_id == topic.id


def test_a_new_topic_tells_its_settings(station):
    request = creating("t", configs=[Config(name="retention.ms", value="1000")])
    (result,) = station.ask(CREATE_TOPICS, request, 5).topics
    shown = {config.name: (config.value, config.config_source) for config in result.configs}
    assert shown["retention.ms"] == ("1000", 1)
    assert shown["segment.bytes"] == ("1073741824", 5)


def test_topics_stand_or_fall_alone(station):
    results = station.ask(CREATE_TOPICS, creating("a", "b", "b", "no good", "__cluster_metadata")).topics
    codes = {result.name: (result.error_code, result.error_message) for result in results}
    assert codes["a"] == (0, None)
    assert codes["b"] == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert codes["no good"][0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert codes["__cluster_metadata"][0] == ErrorCode.INVALID_REQUEST
    assert list(station.broker.image.topics.by_name) == ["a"]
    again = station.ask(CREATE_TOPICS, creating("a")).topics[0]
    assert (again.error_code, again.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'a' already exists.",
    )


def test_validating_creates_nothing(station):
    request = creating("t")
    request.validate_only = True
    assert station.ask(CREATE_TOPICS, request).topics[0].error_code == 0
    assert "t" not in station.broker.image.topics.by_name


def test_a_client_waits_no_longer_than_it_said(station):
    station.held = True
    request = creating("t")
    request.timeout_ms = 500
    pending = CREATE_TOPICS.handle(request, 7, station.connection, station.broker)
    station.settle(499)
    assert pending._message is None
    station.settle(2)
    assert [topic.error_code for topic in pending._message.topics] == [ErrorCode.REQUEST_TIMED_OUT]
    station.settle(3_600_000)  # the change is committed after all, and nobody is told twice
    assert "t" in station.broker.image.topics.by_name


def test_an_answer_in_time_leaves_no_timer_behind(station):
    station.ask(CREATE_TOPICS, creating("t"))
    assert station.timers.waiting == []


@pytest.mark.parametrize(
    ("api", "request_", "results"),
    [
        (CREATE_TOPICS, creating("t"), "topics"),
        (
            DELETE_TOPICS,
            DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")]),
            "responses",
        ),
        (
            CREATE_PARTITIONS,
            CreatePartitionsRequest(
                topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=3)]
            ),
            "results",
        ),
    ],
    ids=["create", "delete", "partitions"],
)
def test_a_refusal_of_the_controller_is_told_for_every_topic(station, api, request_, results):
    station.broker.submit = lambda decide, done: done(BrokerError(ErrorCode.NOT_CONTROLLER, "not here"))
    (result,) = getattr(station.ask(api, request_), results)
    assert (result.name, result.error_code, result.error_message) == (
        "t",
        ErrorCode.NOT_CONTROLLER,
        "not here",
    )


@pytest.mark.parametrize("version", DELETE_TOPICS.versions)
def test_topics_are_deleted_by_name(station, version):
    station.create("t")
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")])
    else:
        request = DeleteTopicsRequest(topic_names=["t"])
    (result,) = station.ask(DELETE_TOPICS, request, version).responses
    assert (result.name, result.error_code) == ("t", 0)
    assert not station.broker.image.topics.by_name
    with pytest.raises(BrokerError):
        station.table.by_name("t", 0)


def test_topics_are_deleted_by_id_and_strangers_are_named(station):
    topic = station.create("t")
    state = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(
        topics=[state(topic_id=topic.id), state(topic_id=bytes(15) + b"\xff"), state(name="u")]
    )
    results = {
        (each.name, each.topic_id): each.error_code for each in station.ask(DELETE_TOPICS, request).responses
    }
    assert results == {
        ("t", topic.id): 0,
        (None, bytes(15) + b"\xff"): ErrorCode.UNKNOWN_TOPIC_ID,
        ("u", bytes(16)): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_topic_named_by_name_and_by_id_is_left_alone(station):
    topic = station.create("t")
    state = DeleteTopicsRequest.DeleteTopicState
    both = DeleteTopicsRequest(topics=[state(name="t", topic_id=topic.id)])
    assert station.ask(DELETE_TOPICS, both).responses[0].error_code == ErrorCode.INVALID_REQUEST
    twice = DeleteTopicsRequest(topics=[state(name="t"), state(name="t")])
    assert station.ask(DELETE_TOPICS, twice).responses[0].error_message == "Duplicate topic name."
    assert "t" in station.broker.image.topics.by_name


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_disabled(make_station, version, code):
    station = make_station(**{"delete.topic.enable": "false"})
    station.create("t")
    assert (
        station.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=["t"]), version).responses[0].error_code
        == code
    )


@pytest.mark.parametrize("version", CREATE_PARTITIONS.versions)
def test_a_topic_grows(station, version):
    station.create("t", 2)
    wish = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=5, assignments=None)
    (result,) = station.ask(CREATE_PARTITIONS, CreatePartitionsRequest(topics=[wish]), version).results
    assert (result.error_code, result.error_message) == (0, None)
    assert station.table.by_name("t", 4).log.end_offset == 0


def test_a_topic_does_not_shrink(station):
    station.create("t", 3)
    wish = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(
        topics=[wish(name="t", count=2, assignments=None), wish(name="u", count=2)]
    )
    results = station.ask(CREATE_PARTITIONS, request).results
    assert [each.error_code for each in results] == [
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert results[0].error_message == "The topic t currently has 3 partition(s); 2 would not be an increase."


def test_a_leader_that_hung_up_on_us_is_not_named(station):
    station.ask(CREATE_TOPICS, creating("t"))
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
    (partition, _) = station.ask(METADATA, request).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (0, station.broker.node_id)
    station.broker.is_lost = lambda node_id: node_id == station.broker.node_id
    (partition, _) = station.ask(METADATA, request).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
