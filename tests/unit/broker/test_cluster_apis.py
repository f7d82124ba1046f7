"""DescribeCluster, DescribeTopicPartitions, DescribeQuorum, UpdateFeatures, ElectLeaders, reassignments."""

import pytest

from ottla.broker.apis.alter_partition_reassignments import API as ALTER_REASSIGNMENTS
from ottla.broker.apis.describe_cluster import API as DESCRIBE_CLUSTER
from ottla.broker.apis.describe_quorum import API as DESCRIBE_QUORUM
from ottla.broker.apis.describe_topic_partitions import API as DESCRIBE_TOPICS
from ottla.broker.apis.elect_leaders import API as ELECT_LEADERS
from ottla.broker.apis.list_partition_reassignments import API as LIST_REASSIGNMENTS
from ottla.broker.apis.update_features import API as UPDATE_FEATURES
from ottla.metadata.feature import METADATA_VERSION_MAX
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.update_features import UpdateFeaturesRequest

UNSET = -(2**31)


def fence(station):
    """Show the broker an image in which another, fenced, broker is registered."""
    own = station.broker.image.brokers[1]
    brokers = {1: own, 2: own._replace(id=2, fenced=True)}
    object.__setattr__(station.broker.image, "brokers", brokers)


# DescribeCluster


@pytest.mark.parametrize("version", DESCRIBE_CLUSTER.versions)
def test_the_cluster_is_described(station, version):
    response = station.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(), version)
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.cluster_id, response.controller_id) == (station.broker.cluster_id, 1)
    assert response.cluster_authorized_operations == UNSET
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (1, "localhost", 9092, "rack-a")


def test_operations_are_told_when_asked_for(station):
    response = station.ask(
        DESCRIBE_CLUSTER, DescribeClusterRequest(include_cluster_authorized_operations=True)
    )
    assert response.cluster_authorized_operations > 0


def test_fenced_brokers_are_shown_when_asked_for(station):
    fence(station)
    assert [each.broker_id for each in station.ask(DESCRIBE_CLUSTER, DescribeClusterRequest()).brokers] == [1]
    response = station.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(include_fenced_brokers=True))
    assert [(each.broker_id, each.is_fenced) for each in response.brokers] == [(1, False), (2, True)]


def test_a_listener_that_no_broker_has_shows_nobody(station):
    station.connection.listener = "INTERNAL"
    response = station.ask(DESCRIBE_CLUSTER, DescribeClusterRequest())
    assert (response.brokers, response.controller_id) == ([], -1)


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 9"),
    ],
)
def test_controllers_are_not_described_here(station, endpoint_type, code, message):
    response = station.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=endpoint_type))
    assert (response.error_code, response.error_message) == (code, message)


def test_the_listener_of_controllers_describes_them(station):
    from ottla.broker.apis.describe_cluster import CONTROLLER_API

    station.connection.listener = "CONTROLLER"
    refused = station.ask(CONTROLLER_API, DescribeClusterRequest(endpoint_type=1))
    assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert "of type CONTROLLER, but we wanted an endpoint of type BROKER" in refused.error_message
    response = station.ask(CONTROLLER_API, DescribeClusterRequest(endpoint_type=2))
    assert response.endpoint_type == 2
    assert [node.broker_id for node in response.brokers] == sorted(
        id for id, each in station.broker.image.controllers.items() if "CONTROLLER" in each.listeners
    )


# DescribeTopicPartitions


def page(station, *names, limit=2000, cursor=None):
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response = station.ask(DESCRIBE_TOPICS, request)
    following = response.next_cursor
    shown = [
        (topic.name, topic.error_code, [part.partition_index for part in topic.partitions])
        for topic in response.topics
    ]
    return shown, None if following is None else (following.topic_name, following.partition_index)


def test_topics_come_in_the_order_of_their_names(station):
    for name, partitions in (("b", 2), ("a", 1), ("c", 1)):
        station.create(name, partitions)
    assert page(station) == ([("a", 0, [0]), ("b", 0, [0, 1]), ("c", 0, [0])], None)
    assert page(station, "c", "a", "c") == ([("a", 0, [0]), ("c", 0, [0])], None)


def test_pages_follow_one_another_until_all_is_told(station):
    for name, partitions in (("a", 2), ("b", 3), ("c", 1)):
        station.create(name, partitions)
    cursor, seen, pages = None, [], 0
    while True:
        shown, cursor = page(station, limit=2, cursor=cursor)
        pages += 1
        seen += [(name, index) for name, _, indexes in shown for index in indexes]
        assert sum(len(indexes) for _, _, indexes in shown) <= 2
        if cursor is None:
            break
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
    assert pages == 3


def test_a_cursor_in_the_middle_of_a_topic(station):
    station.create("a", 5)
    assert page(station, limit=2, cursor=("a", 1)) == ([("a", 0, [1, 2])], ("a", 3))
    assert page(station, limit=0, cursor=("a", 4)) == ([("a", 0, [4])], None)


def test_the_broker_limits_a_page(make_station):
    station = make_station(**{"max.request.partition.size.limit": "1"})
    station.create("a", 2)
    assert page(station) == ([("a", 0, [0])], ("a", 1))


def test_absent_topics_are_named_when_asked_for(station):
    shown, _ = page(station, "nowhere", "a b")
    assert shown == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, []),
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
    ]


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
def test_a_cursor_that_points_nowhere_is_refused(station, cursor):
    station.create("a")
    assert page(station, "a", cursor=cursor) == ([("a", ErrorCode.INVALID_REQUEST, [])], None)


def test_what_is_told_of_a_partition(station):
    topic = station.create("a")
    request = DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsRequest.TopicRequest(name="a")])
    (told,) = station.ask(DESCRIBE_TOPICS, request).topics
    assert (told.topic_id, told.is_internal) == (topic.id, False)
    assert told.topic_authorized_operations > 0
    (part,) = told.partitions
    assert (part.leader_id, part.leader_epoch, part.replica_nodes, part.isr_nodes) == (1, 0, [1], [1])
    assert (part.offline_replicas, part.eligible_leader_replicas, part.last_known_elr) == ([], [], [])


# DescribeQuorum


def quorum_request(topic="__cluster_metadata", index=0):
    topics = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topics(topic_name=topic, partitions=[topics.PartitionData(partition_index=index)])]
    )


@pytest.mark.parametrize("version", DESCRIBE_QUORUM.versions)
def test_the_quorum_is_described(station, version):
    response = station.ask(DESCRIBE_QUORUM, quorum_request(), version)
    (part,) = response.topics[0].partitions
    assert (response.error_code, part.error_code) == (0, 0)
    assert (part.leader_id, part.leader_epoch) == (1, station.quorum.epoch)
    assert part.high_watermark == station.quorum.committed_offset > 0
    (voter,) = part.current_voters
    assert (voter.replica_id, voter.log_end_offset, part.observers) == (1, station.quorum.end_offset, [])
    if version >= 1:
        assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == station.clock.ms
    if version >= 2:
        (node,) = response.nodes
        listeners = [(at.name, at.host, at.port) for at in node.listeners]
        assert (node.node_id, listeners) == (1, [("CONTROLLER", "localhost", 9093)])


@pytest.mark.parametrize("asked", [("t", 0), ("__cluster_metadata", 1)])
def test_no_other_partition_has_a_quorum(station, asked):
    (part,) = station.ask(DESCRIBE_QUORUM, quorum_request(*asked)).topics[0].partitions
    assert (part.partition_index, part.error_code) == (asked[1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


# UpdateFeatures


@pytest.mark.parametrize("version", UPDATE_FEATURES.versions[1:])
def test_a_feature_is_updated(station, version):
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="streams.version", max_version_level=0, upgrade_type=2
    )
    response = station.ask(UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[update]), version)
    assert response.error_code == 0
    assert station.broker.image.features.level("streams.version") == 0


def test_a_level_nobody_knows_is_refused(station):
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="metadata.version", max_version_level=METADATA_VERSION_MAX + 1
    )
    response = station.ask(UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[update]))
    assert response.error_code != 0
    assert response.error_message


# ElectLeaders


def election(*topics):
    kind = ElectLeadersRequest.TopicPartitions
    return ElectLeadersRequest(
        topic_partitions=[kind(topic=name, partitions=indexes) for name, indexes in topics] or None
    )


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
def test_where_all_is_well_no_election_is_needed(station, version):
    station.create("t", 2)
    response = station.ask(ELECT_LEADERS, election(("t", [0, 1]), ("u", [0])), version)
    codes = {
        (topic.topic, part.partition_id): part.error_code
        for topic in response.replica_election_results
        for part in topic.partition_result
    }
    assert codes == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_of_all_partitions_only_news_is_told(station):
    station.create("t", 2)
    response = station.ask(ELECT_LEADERS, election())
    assert (
        response.error_code,
        [p for t in response.replica_election_results for p in t.partition_result],
    ) == (0, [])


@pytest.mark.parametrize("version", ELECT_LEADERS.versions)
def test_a_refused_election_is_told_for_every_partition(station, version):
    station.broker.submit = lambda decide, done: done(BrokerError(ErrorCode.NOT_CONTROLLER, "not here"))
    response = station.ask(ELECT_LEADERS, election(("t", [0])), version)
    assert response.replica_election_results[0].partition_result[0].error_code == ErrorCode.NOT_CONTROLLER
    assert response.error_code == (ErrorCode.NOT_CONTROLLER if version else 0)


# Reassignments


def test_a_reassignment_to_where_the_replica_is_changes_nothing(station):
    station.create("t")
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    request = AlterPartitionReassignmentsRequest(
        topics=[
            topic(name="t", partitions=[topic.ReassignablePartition(partition_index=0, replicas=[1])]),
            topic(name="u", partitions=[topic.ReassignablePartition(partition_index=0, replicas=None)]),
        ]
    )
    response = station.ask(ALTER_REASSIGNMENTS, request)
    assert [each.partitions[0].error_code for each in response.responses] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    listed = station.ask(LIST_REASSIGNMENTS, ListPartitionReassignmentsRequest())
    assert (listed.error_code, listed.topics) == (0, [])


def test_reassignments_that_the_controller_refuses(station):
    station.broker.submit = lambda decide, done: done(BrokerError(ErrorCode.NOT_CONTROLLER, "not here"))
    altered = station.ask(ALTER_REASSIGNMENTS, AlterPartitionReassignmentsRequest())
    listed = station.ask(LIST_REASSIGNMENTS, ListPartitionReassignmentsRequest())
    assert (altered.error_code, listed.error_code) == (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER)
