"""Topics: Metadata, CreateTopics, DeleteTopics, CreatePartitions and DescribeTopicPartitions, as Kafka answers them."""

import pytest

from tests.compat.answers import Fields, Pair, agreement, by_name

UNKNOWN_ID = bytes(range(16))


def new(name: str, partitions: int = 1, replicas: int = 1, **more: object) -> Fields:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **more}


def placed(*places: tuple[int, list[int]]) -> list[Fields]:
    return [{"partition_index": index, "broker_ids": brokers} for index, brokers in places]


# Requests that make nothing, so that they can be asked again at each version.
REFUSED: dict[str, list[Fields]] = {
    "bad name": [new("bad/name")],
    "dots": [new(".."), new(".")],
    "empty name": [new("")],
    "long name": [new("n" * 250)],
    "metadata topic": [new("__cluster_metadata")],
    "no partitions": [new("t", 0), new("u", -2)],
    "no replicas": [new("t", 1, 0), new("u", 1, -2), new("v", 1, 2)],
    "twice": [new("twice"), new("twice")],
    "exists": [new("exists")],
    "collides": [new("exists.with_dot")],
    "bad value": [new("t", configs=[{"name": "retention.ms", "value": "soon"}])],
    "bad key": [new("t", configs=[{"name": "no.such", "value": "1"}])],
    "null value": [new("t", configs=[{"name": "retention.ms", "value": None}])],
    "small segment": [new("t", configs=[{"name": "segment.bytes", "value": "1"}])],
    "assigned twice": [new("t", -1, -1, assignments=placed((0, [1]), (0, [1])))],
    "assigned with gap": [new("t", -1, -1, assignments=placed((0, [1]), (2, [1])))],
    "assigned nowhere": [new("t", -1, -1, assignments=placed((0, [])))],
    "assigned to stranger": [new("t", -1, -1, assignments=placed((0, [9])))],
    "assigned doubly": [new("t", -1, -1, assignments=placed((0, [1, 1])))],
    "assigned and counted": [new("t", 1, 1, assignments=placed((0, [1])))],
    "assigned and replicated": [new("t", -1, 1, assignments=placed((0, [1])))],
    "mixed": [new("exists"), new("t", 0)],
    "nothing": [],
}


@pytest.mark.parametrize("case", REFUSED)
def test_create_topics_refused(pair: Pair, case: str) -> None:
    pair.make_topic("exists")
    pair.make_topic("exists.with.dot")
    with agreement(pair) as both:
        both.same("CreateTopics", range(2, 8), {"topics": REFUSED[case]}, drop=by_name("topics"))


def test_create_topics_validated(pair: Pair) -> None:
    configs = [{"name": "retention.ms", "value": "1234"}, {"name": "cleanup.policy", "value": "compact"}]
    with agreement(pair) as both:
        for fields in (
            new("only-a-thought", 3),
            new("only-a-thought", -1, -1),
            new("only-a-thought", 2, configs=configs),
            new("only-a-thought", -1, -1, assignments=placed((0, [1]), (1, [1]))),
        ):
            both.same(
                "CreateTopics", range(2, 8), {"topics": [fields], "validate_only": True}, drop=sort_configs
            )
        both.same(
            "Metadata", 12, {"topics": [{"name": "only-a-thought"}], "allow_auto_topic_creation": False}
        )


def sort_configs(answer: Fields) -> Fields:
    for topic in answer["topics"]:
        if topic["configs"]:
            topic["configs"].sort(key=lambda each: each["name"])
    return answer


def test_create_topics(pair: Pair) -> None:
    with agreement(pair) as both:
        for version in range(2, 8):
            fields = new(f"made-v{version}", 2, configs=[{"name": "retention.ms", "value": "99"}])
            both.same("CreateTopics", version, {"topics": [fields]}, drop=sort_configs)


def test_delete_topics(pair: Pair) -> None:
    with agreement(pair) as both:
        for version in range(1, 6):
            pair.make_topic(f"gone-v{version}")
            names = [f"gone-v{version}", "never-was"]
            both.same(
                "DeleteTopics", version, {"topic_names": names, "timeout_ms": 5000}, drop=by_name("responses")
            )
        both.same(
            "DeleteTopics",
            range(1, 6),
            {"topic_names": ["never-was", "never-was"], "timeout_ms": 5000},
            drop=by_name("responses"),
        )
        pair.make_topic("gone-by-name")
        both.same("DeleteTopics", 6, {"topics": [{"name": "gone-by-name"}], "timeout_ms": 5000})
        pair.make_topic("gone-by-id")
        both.same(
            "DeleteTopics",
            6,
            lambda side: {"topics": [{"topic_id": side.topic_id("gone-by-id")}], "timeout_ms": 5000},
        )
        for topics in (
            [{"topic_id": UNKNOWN_ID}],
            [{"name": "never-was"}],
            [{"name": "never-was"}, {"name": "never-was"}],
            [{"topic_id": UNKNOWN_ID}, {"topic_id": UNKNOWN_ID}],
            [{"name": "never-was", "topic_id": UNKNOWN_ID}],
            [{"name": None}],
        ):
            both.same("DeleteTopics", 6, {"topics": topics, "timeout_ms": 5000})


def test_metadata(pair: Pair) -> None:
    pair.make_topic("seen", 3)

    def only_ours(answer: Fields) -> Fields:
        answer["topics"] = [topic for topic in answer["topics"] if topic["name"] == "seen"]
        return answer

    with agreement(pair) as both:
        both.same("Metadata", range(1, 14), {"topics": None}, drop=only_ours)
        both.same("Metadata", 0, {"topics": []}, drop=only_ours)
        both.same("Metadata", range(1, 14), {"topics": []})
        quiet = {"allow_auto_topic_creation": False}
        both.same("Metadata", range(4, 14), {"topics": [{"name": "seen"}], **quiet})
        both.same("Metadata", range(4, 14), {"topics": [{"name": "never-was"}], **quiet})
        both.same("Metadata", range(14), {"topics": [{"name": "bad/name"}]})
        both.same("Metadata", range(4, 14), {"topics": [{"name": "seen"}, {"name": "seen"}], **quiet})
        several = [{"name": "never-was"}, {"name": "seen"}, {"name": "bad name"}]
        both.same("Metadata", range(4, 14), {"topics": several, **quiet}, drop=by_name("topics"))
        both.same(
            "Metadata",
            range(8, 14),
            {"topics": [{"name": "seen"}], "include_topic_authorized_operations": True, **quiet},
        )
        both.same("Metadata", range(8, 11), {"topics": [], "include_cluster_authorized_operations": True})


def test_metadata_by_id(pair: Pair) -> None:
    pair.make_topic("seen-by-id", 2)
    with agreement(pair) as both:
        for name in (None, "seen-by-id"):
            both.same(
                "Metadata",
                range(10, 14),
                lambda side: {"topics": [{"topic_id": side.topic_id("seen-by-id"), "name": name}]},  # noqa: B023
            )
        both.same("Metadata", range(10, 14), {"topics": [{"topic_id": UNKNOWN_ID, "name": None}]})
        both.same("Metadata", range(10, 12), {"topics": [{"name": None}]})


def test_auto_creation(pair: Pair) -> None:
    with agreement(pair) as both:
        for version in (0, 3, 4, 9, 13):
            name = f"on-first-use-v{version}"
            # Kafka says that there is no such topic, and makes it; Ottla makes it first, and so can show it.
            pair.both("Metadata", version, {"topics": [{"name": name}]})
            pair.wait_for(name, 1)
            both.same("Metadata", version, {"topics": [{"name": name}]})


def test_create_partitions(pair: Pair) -> None:
    pair.make_topic("grows", 2)

    def wish(count: int, assignments: list[list[int]] | None = None, name: str = "grows") -> Fields:
        listed = None if assignments is None else [{"broker_ids": brokers} for brokers in assignments]
        return {"name": name, "count": count, "assignments": listed}

    with agreement(pair) as both:
        for topics in (
            [wish(2)],
            [wish(1)],
            [wish(0)],
            [wish(-1)],
            [wish(3, name="never-was")],
            [wish(3), wish(4)],
            [wish(4, [[1]])],
            [wish(3, [[1], [1]])],
            [wish(3, [[]])],
            [wish(3, [[7]])],
            [wish(3, [[1, 1]])],
            [wish(3, [[1, 7]])],
            [wish(3, name="bad/name")],
        ):
            both.same("CreatePartitions", range(4), {"topics": topics, "timeout_ms": 5000})
        fine = {"topics": [wish(3)], "timeout_ms": 5000, "validate_only": True}
        both.same("CreatePartitions", range(4), fine)
        for version, count in enumerate(range(3, 7)):
            both.same("CreatePartitions", version, {"topics": [wish(count, [[1]])], "timeout_ms": 5000})
            pair.wait_for("grows", count)


def test_describe_topic_partitions(pair: Pair) -> None:
    pair.make_topic("paged-a", 3)
    pair.make_topic("paged-b", 2)
    names = [{"name": "paged-b"}, {"name": "paged-a"}, {"name": "paged-none"}]
    with agreement(pair) as both:
        for limit in (1, 2, 3, 4, 5, 6, 2000, 0, -1):
            both.same("DescribeTopicPartitions", 0, {"topics": names, "response_partition_limit": limit})
        for topic, partition in (
            ("paged-a", 1),
            ("paged-a", 7),
            ("paged-b", 0),
            ("paged-aa", 0),
            ("zzz", 0),
            ("paged-a", -1),
        ):
            cursor = {"topic_name": topic, "partition_index": partition}
            both.same(
                "DescribeTopicPartitions",
                0,
                {"topics": names, "response_partition_limit": 10, "cursor": cursor},
            )
        both.same(
            "DescribeTopicPartitions", 0, {"topics": [{"name": "bad/name"}], "response_partition_limit": 10}
        )
        both.same(
            "DescribeTopicPartitions",
            0,
            {"topics": [{"name": "paged-a"}] * 2, "response_partition_limit": 10},
        )
