"""Creating, growing and deleting topics, with Kafka's codes and words."""

import pytest

from ottla.metadata.config import ConfigType
from ottla.metadata.directory import UNASSIGNED
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.records.metadata import ConfigRecord, PartitionRecord, TopicRecord
from tests.unit.controller.stage import Stage, Wish, directory, wish


@pytest.fixture
def stage() -> Stage:
    return Stage(1)


def test_a_topic_is_made_whole(stage: Stage) -> None:
    response = stage.create(wish("one", 2, configs={"cleanup.policy": "compact"}))
    (result,) = response.topics
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert [type(record) for record in stage.records] == [
        TopicRecord,
        ConfigRecord,
        PartitionRecord,
        PartitionRecord,
    ]
    topic = stage.image.topics.by_name["one"]
    assert topic.id == result.topic_id
    state = topic.partitions[1]
    assert (state.leader, state.leader_epoch, state.isr, state.directories) == (1, 0, (1,), (directory(1),))
    assert stage.image.configs.of(ConfigType.TOPIC, "one") == {"cleanup.policy": "compact"}


def test_the_answer_shows_all_settings_and_where_they_come_from() -> None:
    stage = Stage(1, settings={"log.retention.ms": "5000"})
    (result,) = stage.create(wish("one", configs={"cleanup.policy": "compact"})).topics
    assert result.configs is not None
    shown = {each.name: (each.value, each.config_source) for each in result.configs}
    assert shown["cleanup.policy"] == ("compact", 1)
    assert shown["retention.ms"] == ("5000", 4)
    assert shown["segment.bytes"] == ("1073741824", 5)
    assert shown["min.insync.replicas"] == ("1", 3)
    assert list(shown) == sorted(shown)


def test_whoever_may_not_describe_sees_no_settings(stage: Stage) -> None:
    request = CreateTopicsRequest(topics=[wish("one")])
    response = stage.do(lambda controller, now: controller.create_topics(request, now, describable=()))
    (result,) = response.topics
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert result.num_partitions == -1
    assert not result.configs


def test_minus_one_takes_the_defaults() -> None:
    stage = Stage(1, 2, settings={"num.partitions": "3", "default.replication.factor": "2"})
    (result,) = stage.create(wish("one", -1, -1)).topics
    assert (result.num_partitions, result.replication_factor) == (3, 2)


def test_validate_only_records_nothing(stage: Stage) -> None:
    (result,) = stage.create(wish("one"), validate_only=True).topics
    assert result.error_code == ErrorCode.NONE
    assert stage.records == []
    assert "one" not in stage.image.topics.by_name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a/b", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "contains one or more characters other than"),
    ],
)
def test_bad_names_are_refused(stage: Stage, name: str, words: str) -> None:
    (result,) = stage.create(wish(name)).topics
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message is not None
    assert result.error_message.startswith("Topic name is invalid: ")
    assert words in result.error_message


def test_names_that_look_alike_in_metrics_collide(stage: Stage) -> None:
    stage.create(wish("a.b_c"))
    (result,) = stage.create(wish("a_b.c")).topics
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == "Topic 'a_b.c' collides with existing topic: a.b_c"
    delete(stage, "a.b_c")
    (result,) = stage.create(wish("a_b.c")).topics
    assert result.error_code == ErrorCode.NONE


def test_an_existing_topic_is_not_made_again(stage: Stage) -> None:
    stage.create(wish("one"))
    (result,) = stage.create(wish("one")).topics
    assert (result.error_code, result.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'one' already exists.",
    )


def test_one_name_twice_in_a_request_fails_and_the_others_do_not(stage: Stage) -> None:
    response = stage.create(wish("one"), wish("two"), wish("one"))
    assert [(each.name, each.error_code, each.error_message) for each in response.topics] == [
        ("two", ErrorCode.NONE, None),
        ("one", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
    ]


def test_the_metadata_log_is_nobodys_topic(stage: Stage) -> None:
    (result,) = stage.create(wish("__cluster_metadata")).topics
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == "Creation of internal topic __cluster_metadata is prohibited."


@pytest.mark.parametrize(
    ("topic", "code", "words"),
    [
        (
            wish("t", 0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            wish("t", -2),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            wish("t", 1, 0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1",
        ),
        (
            wish("t", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target",
        ),
        (wish("t", configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (
            wish("t", configs={"retention.ms": "x"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration retention.ms",
        ),
        (
            wish("t", configs={"retention.ms": None}),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs",
        ),
        (
            wish("t", assignments={0: []}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "includes an empty replica list.",
        ),
        (
            wish("t", assignments={0: [1, 1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "includes the broker 1 more than once.",
        ),
        (
            wish("t", assignments={0: [9]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "broker 9, but no such broker is registered",
        ),
        (
            wish("t", assignments={1: [1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "a consecutive 0-based integer sequence",
        ),
    ],
)
def test_impossible_topics_are_refused(stage: Stage, topic: Wish, code: ErrorCode, words: str) -> None:
    (result,) = stage.create(topic).topics
    assert result.error_code == code
    assert result.error_message is not None
    assert words in result.error_message
    assert stage.records == []


def test_an_assignment_and_a_count_exclude_each_other(stage: Stage) -> None:
    topic = wish("t", assignments={0: [1]})
    topic.num_partitions = 1
    (result,) = stage.create(topic).topics
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert (
        result.error_message
        == "A manual partition assignment was specified, but numPartitions was not set to -1."
    )
    topic = wish("t", assignments={0: [1]})
    topic.replication_factor = 1
    (result,) = stage.create(topic).topics
    assert (
        result.error_message
        == "A manual partition assignment was specified, but replication factor was not set to -1."
    )


def test_an_assignment_is_followed() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("t", assignments={0: [2, 1], 1: [3, 2]}))
    assert stage.state("t", 0).replicas == (2, 1)
    assert stage.state("t", 1).leader == 3


def test_a_fenced_broker_is_a_replica_but_not_in_sync() -> None:
    stage = Stage(1, 2)
    stage.heartbeat(2, want_fence=True)
    stage.create(wish("t", assignments={0: [2, 1]}))
    assert (stage.state("t").replicas, stage.state("t").isr, stage.state("t").leader) == ((2, 1), (1,), 1)
    (result,) = stage.create(wish("u", assignments={0: [2]})).topics
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message is not None
    assert result.error_message.endswith("for partition 0 are fenced or in controlled shutdown.")


def test_no_broker_no_topic() -> None:
    stage = Stage()
    (result,) = stage.create(wish("t")).topics
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message is not None
    assert "All brokers are currently fenced" in result.error_message


def test_a_broker_with_several_directories_chooses_itself() -> None:
    stage = Stage()
    stage.register(1, directories=2)
    stage.heartbeat(1)
    stage.create(wish("t"))
    assert stage.state("t").directories == (UNASSIGNED,)


def test_too_many_partitions_at_once_are_refused(stage: Stage) -> None:
    with pytest.raises(BrokerError) as refused:
        stage.create(wish("one", 6000), wish("two", 4001))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    # Each topic is a record too.
    with pytest.raises(BrokerError, match="Unable to perform excessively large batch operation") as refused:
        stage.create(wish("one", 6000), wish("two", 3999))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    assert stage.create(wish("one", 6000), wish("two", 3998)).topics[0].error_code == ErrorCode.NONE


def delete(stage: Stage, *names: str) -> DeleteTopicsResponse:
    request = DeleteTopicsRequest(topic_names=list(names))
    return stage.do(lambda controller, now: controller.delete_topics(request, 5, now))


def delete_states(stage: Stage, *states: DeleteTopicsRequest.DeleteTopicState) -> DeleteTopicsResponse:
    request = DeleteTopicsRequest(topics=list(states))
    return stage.do(lambda controller, now: controller.delete_topics(request, 6, now))


def test_topics_are_deleted_by_name_and_by_id(stage: Stage) -> None:
    made = stage.create(wish("one"), wish("two")).topics
    assert [(each.error_code, each.error_message) for each in delete(stage, "one", "absent").responses] == [
        (ErrorCode.NONE, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
    ]
    state = DeleteTopicsRequest.DeleteTopicState
    unknown = bytes([5] * 16)
    response = delete_states(stage, state(topic_id=made[1].topic_id), state(topic_id=unknown))
    assert [(each.name, each.topic_id, each.error_code) for each in response.responses] == [
        ("two", made[1].topic_id, ErrorCode.NONE),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert response.responses[1].error_message == "This server does not host this topic ID."
    assert not stage.image.topics.by_name


def test_what_is_named_twice_is_not_deleted(stage: Stage) -> None:
    (made,) = stage.create(wish("one")).topics
    assert [each.error_message for each in delete(stage, "one", "one").responses] == ["Duplicate topic name."]
    state = DeleteTopicsRequest.DeleteTopicState
    for topics, words in (
        ([state(topic_id=made.topic_id)] * 2, "Duplicate topic id."),
        ([state(name="one", topic_id=made.topic_id)], "You may not specify both topic name and topic id."),
        (
            [state(name="one"), state(topic_id=made.topic_id)],
            "The provided topic name maps to an ID that was already supplied.",
        ),
        ([state()], "Neither topic name nor id were specified."),
    ):
        response = delete_states(stage, *topics)
        assert [(each.error_code, each.error_message) for each in response.responses] == [
            (ErrorCode.INVALID_REQUEST, words)
        ]
    response = delete_states(stage, *[state(topic_id=made.topic_id)] * 2, state(name="one"))
    assert {each.error_code for each in response.responses} == {ErrorCode.INVALID_REQUEST}
    assert "one" in stage.image.topics.by_name


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_turned_off(version: int, code: ErrorCode) -> None:
    stage = Stage(1, settings={"delete.topic.enable": "false"})
    stage.create(wish("one"))
    request = DeleteTopicsRequest(topic_names=["one"])
    response = stage.do(lambda controller, now: controller.delete_topics(request, version, now))
    assert [each.error_code for each in response.responses] == [code]
    assert "one" in stage.image.topics.by_name


def grow(
    stage: Stage,
    name: str,
    count: int,
    assignments: list[list[int]] | None = None,
    *,
    validate_only: bool = False,
) -> CreatePartitionsResponse.CreatePartitionsTopicResult:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    given = None
    if assignments is not None:
        given = [kind.CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    request = CreatePartitionsRequest(
        topics=[kind(name=name, count=count, assignments=given)], validate_only=validate_only
    )
    return stage.do(lambda controller, now: controller.create_partitions(request, now)).results[0]


def test_a_topic_does_not_grow_onto_brokers_whose_directories_are_all_cordoned() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", 1))
    (at_first,) = stage.image.topics.by_name["one"].partitions
    stage.heartbeat(1, cordoned=[directory(1)])
    stage.heartbeat(2, cordoned=[directory(2)])
    assert grow(stage, "one", 8).error_code == ErrorCode.NONE
    partitions = stage.image.topics.by_name["one"].partitions
    assert {state.replicas for index, state in partitions.items() if index != at_first} == {(3,)}
    stage.heartbeat(3, cordoned=[directory(3)])
    answer = grow(stage, "one", 9)
    assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "cordoned" in (answer.error_message or "")
    # Who is named is taken all the same, as in Kafka.
    assert grow(stage, "one", 9, [[2]]).error_code == ErrorCode.NONE
    stage.heartbeat(1, cordoned=[])
    assert grow(stage, "one", 12).error_code == ErrorCode.NONE
    partitions = stage.image.topics.by_name["one"].partitions
    assert {partitions[index].replicas for index in (9, 10, 11)} == {(1,)}


def test_a_topic_grows(stage: Stage) -> None:
    stage.create(wish("one", 2))
    assert grow(stage, "one", 5, validate_only=True).error_code == ErrorCode.NONE
    assert len(stage.image.topics.by_name["one"].partitions) == 2
    assert grow(stage, "one", 5).error_code == ErrorCode.NONE
    assert list(stage.image.topics.by_name["one"].partitions) == [0, 1, 2, 3, 4]
    assert stage.state("one", 4).leader == 1


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code", "words"),
    [
        ("absent", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("one", 2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            "one",
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "The topic one currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            "one",
            4,
            [[1]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            "one",
            3,
            [[9]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
    ],
)
def test_a_topic_does_not_grow_wrongly(
    stage: Stage,
    name: str,
    count: int,
    assignments: list[list[int]] | None,
    code: ErrorCode,
    words: str | None,
) -> None:
    stage.create(wish("one", 2))
    result = grow(stage, name, count, assignments)
    assert (result.error_code, result.error_message) == (code, words)
