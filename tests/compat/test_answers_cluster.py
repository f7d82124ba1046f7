"""The cluster and its nodes: versions, features, quorum, directories, elections and reassignments, as Kafka answers."""

from typing import Any

from ottla.wire.apis import BY_KEY
from tests.compat.answers import Fields, Pair, Side, agreement

CLIENT = {"client_software_name": "ottla-tests", "client_software_version": "1.0"}


def test_api_versions(pair: Pair) -> None:
    """Every API that both serve has the same span, but that a later Kafka may have added versions at its end."""

    def spans(side: Side) -> dict[str, tuple[int, int]]:
        answer: Any = side.ask("ApiVersions", 3, CLIENT)
        return {BY_KEY[each.api_key].name: (each.min_version, each.max_version) for each in answer.api_keys}

    kafka, other = spans(pair.kafka), spans(pair.other)
    shared = kafka.keys() & other.keys()
    assert {"Produce", "Fetch", "Metadata", "CreateTopics", "ListOffsets", "DescribeConfigs"} <= shared
    assert {name: kafka[name][0] for name in shared} == {name: other[name][0] for name in shared}
    assert {name for name in shared if other[name][1] < kafka[name][1]} == set()

    def features(answer: Any) -> Any:
        answer["api_keys"] = sorted(other.keys() & shared)
        answer["supported_features"].sort(key=lambda each: each["name"])
        answer["finalized_features"].sort(key=lambda each: each["name"])
        answer["finalized_features_epoch"] = answer["finalized_features_epoch"] >= 0
        return answer

    with agreement(pair) as both:
        both.same("ApiVersions", range(5), CLIENT, drop=features)
        for name, version in (("", "1"), ("a b", "1"), ("-x", "1"), ("x", "1/2"), ("x-", "1"), ("ok", "")):
            odd = {"client_software_name": name, "client_software_version": version}
            both.same("ApiVersions", range(3, 5), odd, drop=features)


def test_describe_cluster(pair: Pair) -> None:
    with agreement(pair) as both:
        both.same("DescribeCluster", range(3), {})
        both.same("DescribeCluster", range(3), {"include_cluster_authorized_operations": True})
        both.same("DescribeCluster", range(1, 3), {"endpoint_type": 2})
        both.same("DescribeCluster", range(1, 3), {"endpoint_type": 9})
        both.same("DescribeCluster", 2, {"include_fenced_brokers": True})


def test_describe_quorum(pair: Pair) -> None:
    def no_offsets(answer: Any) -> Any:
        for topic in answer["topics"]:
            for partition in topic["partitions"]:
                for name in ("leader_epoch", "high_watermark"):
                    partition[name] = partition[name] > 0
                for replica in partition["current_voters"] + partition["observers"]:
                    replica["log_end_offset"] = replica["log_end_offset"] > 0
        return answer

    def asked(topic: str, *partitions: int) -> Fields:
        return {"topics": [{"topic_name": topic, "partitions": [{"partition_index": n} for n in partitions]}]}

    with agreement(pair) as both:
        both.same("DescribeQuorum", range(3), asked("__cluster_metadata", 0), drop=no_offsets)
        both.same("DescribeQuorum", range(3), asked("__cluster_metadata", 1), drop=no_offsets)
        both.same("DescribeQuorum", range(3), asked("other", 0), drop=no_offsets)
        both.same("DescribeQuorum", range(3), {"topics": []}, drop=no_offsets)


def test_update_features(pair: Pair) -> None:
    def level(side: Side) -> int:
        answer: Any = side.ask("ApiVersions", 3, CLIENT)
        levels = {each.name: int(each.max_version_level) for each in answer.finalized_features}
        return levels["metadata.version"]

    def update(feature: str, value: int, kind: int = 1, *, relative: bool = False) -> Any:
        def fields(side: Side) -> Fields:
            wish = {"feature": feature, "max_version_level": value + (level(side) if relative else 0)}
            return {
                "feature_updates": [{**wish, "upgrade_type": kind}],
                "validate_only": True,
                "timeout_ms": 5000,
            }

        return fields

    with agreement(pair) as both:
        both.same("UpdateFeatures", range(1, 3), update("metadata.version", 100, relative=True))
        both.same("UpdateFeatures", range(1, 3), update("metadata.version", 0, relative=True))
        both.same("UpdateFeatures", range(1, 3), update("metadata.version", -1, relative=True))
        both.same("UpdateFeatures", range(1, 3), update("metadata.version", -1, 2, relative=True))
        both.same("UpdateFeatures", range(1, 3), update("no.such.feature", 1))
        both.same("UpdateFeatures", range(1, 3), update("no.such.feature", 0, 2))
        both.same("UpdateFeatures", range(1, 3), update("group.version", 9))
        both.same("UpdateFeatures", range(1, 3), update("group.version", 1, 7))
        both.same(
            "UpdateFeatures", range(1, 3), {"feature_updates": [], "validate_only": True, "timeout_ms": 5000}
        )


def test_log_directories(pair: Pair) -> None:
    topic = pair.make_topic("in-a-directory", 2)
    with agreement(pair) as both:
        both.same(
            "DescribeLogDirs",
            range(1, 6),
            {"topics": [{"topic": topic, "partitions": [0, 1]}]},
            drop=by_index,
        )
        both.same(
            "DescribeLogDirs", range(1, 6), {"topics": [{"topic": topic, "partitions": [9]}]}, drop=by_index
        )
        both.same(
            "DescribeLogDirs",
            range(1, 6),
            {"topics": [{"topic": "never-was", "partitions": [0]}]},
            drop=by_index,
        )
        both.same("DescribeLogDirs", range(1, 6), {"topics": []}, drop=by_index)

        def move(path: str | None, name: str, *partitions: int) -> Any:
            def fields(side: Side) -> Fields:
                topics = [{"name": name, "partitions": list(partitions)}]
                return {"dirs": [{"path": path or str(side.server.log_dir), "topics": topics}]}

            return fields

        both.same("AlterReplicaLogDirs", range(1, 3), move(None, topic, 0, 1))
        both.same("AlterReplicaLogDirs", range(1, 3), move("/no/such", topic, 0))
        both.same("AlterReplicaLogDirs", range(1, 3), move("relative", topic, 0))
        both.same("AlterReplicaLogDirs", range(1, 3), move(None, "never-was", 0))
        both.same("AlterReplicaLogDirs", range(1, 3), move(None, topic, 9))


def by_index(answer: Any) -> Any:
    for result in answer["results"]:
        for topic in result["topics"]:
            topic["partitions"].sort(key=lambda each: each["partition_index"])
    return answer


def test_elect_leaders(pair: Pair) -> None:
    topic = pair.make_topic("elected", 2)

    def wish(kind: int, name: str, *partitions: int) -> Fields:
        return {
            "election_type": kind,
            "topic_partitions": [{"topic": name, "partitions": list(partitions)}],
            "timeout_ms": 5000,
        }

    with agreement(pair) as both:
        both.same("ElectLeaders", 0, wish(0, topic, 0))
        for kind in (0, 1, 5):
            both.same("ElectLeaders", range(1, 3), wish(kind, topic, 0))
            both.same("ElectLeaders", range(1, 3), wish(kind, topic, 9))
            both.same("ElectLeaders", range(1, 3), wish(kind, "never-was", 0))
        both.same("ElectLeaders", range(1, 3), {"topic_partitions": [], "timeout_ms": 5000})


def test_reassignments(pair: Pair) -> None:
    topic = pair.make_topic("reassigned", 2)

    def wish(replicas: list[int] | None, name: str = topic, partition: int = 0) -> Fields:
        place = {"partition_index": partition, "replicas": replicas}
        return {"timeout_ms": 5000, "topics": [{"name": name, "partitions": [place]}]}

    with agreement(pair) as both:
        for fields in (
            wish([1]),
            wish(None),
            wish([]),
            wish([7]),
            wish([1, 1]),
            wish([1, 7]),
            wish([1], "never-was"),
            wish([1], partition=9),
            wish([-1]),
            {"timeout_ms": 5000, "topics": []},
        ):
            both.same("AlterPartitionReassignments", range(2), fields)
        for topics in (
            None,
            [],
            [{"name": topic, "partition_indexes": [0]}],
            [{"name": "never-was", "partition_indexes": [0]}],
        ):
            both.same("ListPartitionReassignments", 0, {"timeout_ms": 5000, "topics": topics})
