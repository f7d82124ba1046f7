"""Configs: every setting with its value, source, type and synonyms, and every change and refusal, as Kafka answers."""

from typing import Any

import pytest

from tests.compat.answers import Fields, Pair, agreement

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

# What stands in server.properties because it has to differ.
ADDRESSES = frozenset(
    {"listeners", "advertised.listeners", "log.dirs", "controller.quorum.bootstrap.servers"}
)


def describe(kind: int, name: str, keys: list[str] | None = None, **more: object) -> Fields:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return {"resources": [resource], "include_synonyms": True, **more}


def in_order(answer: Any) -> Any:
    """Configs by name, so that a missing one is told apart from another order."""
    for result in answer["results"]:
        configs = {each["name"]: each for each in result["configs"] if not each["name"].startswith("ottla.")}
        result["configs"] = {name: configs[name] for name in sorted(configs)}
        for name, entry in configs.items():
            if name in ADDRESSES:
                entry["value"] = "an address"
                entry["synonyms"] = len(entry["synonyms"])
    return answer


def test_describe_topic(pair: Pair) -> None:
    topic = pair.make_topic("described", retention_ms=1234, cleanup_policy="compact,delete")
    with agreement(pair) as both:
        both.same("DescribeConfigs", range(1, 5), describe(TOPIC, topic), drop=in_order)
        both.same(
            "DescribeConfigs", range(1, 5), describe(TOPIC, topic, include_synonyms=False), drop=in_order
        )
        both.same(
            "DescribeConfigs", range(3, 5), describe(TOPIC, topic, include_documentation=True), drop=in_order
        )
        both.same(
            "DescribeConfigs", range(1, 5), describe(TOPIC, topic, ["retention.ms", "no.such"]), drop=in_order
        )
        both.same("DescribeConfigs", range(1, 5), describe(TOPIC, topic, []), drop=in_order)


def test_describe_broker(pair: Pair) -> None:
    with agreement(pair) as both:
        both.same("DescribeConfigs", range(1, 5), describe(BROKER, "1"), drop=in_order)
        both.same("DescribeConfigs", range(1, 5), describe(BROKER, ""), drop=in_order)


def test_describe_refused(pair: Pair) -> None:
    with agreement(pair) as both:
        for kind, name in (
            (TOPIC, "never-was"),
            (TOPIC, "bad/name"),
            (TOPIC, ""),
            (BROKER, "7"),
            (BROKER, "one"),
            (LOGGER, "7"),
            (CLIENT_METRICS, ""),
            (CLIENT_METRICS, "no-such"),
            (GROUP, ""),
            (1, "x"),
            (99, "x"),
        ):
            both.same("DescribeConfigs", range(1, 5), describe(kind, name), drop=in_order)


def alter(kind: int, name: str, *changes: tuple[str, int, str | None], **more: object) -> Fields:
    configs = [
        {"name": key, "config_operation": operation, "value": value} for key, operation, value in changes
    ]
    return {"resources": [{"resource_type": kind, "resource_name": name, "configs": configs}], **more}


REFUSED: dict[str, Fields] = {
    "bad value": alter(TOPIC, "altered", ("retention.ms", SET, "soon")),
    "bad key": alter(TOPIC, "altered", ("no.such", SET, "1")),
    "null value": alter(TOPIC, "altered", ("retention.ms", SET, None)),
    "twice": alter(TOPIC, "altered", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    "append to no list": alter(TOPIC, "altered", ("retention.ms", APPEND, "1")),
    "append nonsense": alter(TOPIC, "altered", ("cleanup.policy", APPEND, "forget")),
    "too small": alter(TOPIC, "altered", ("segment.bytes", SET, "1")),
    "no replicas": alter(TOPIC, "altered", ("min.insync.replicas", SET, "0")),
    "unknown topic": alter(TOPIC, "never-was", ("retention.ms", SET, "1")),
    "bad topic": alter(TOPIC, "bad/name", ("retention.ms", SET, "1")),
    "no topic": alter(TOPIC, "", ("retention.ms", SET, "1")),
    "unknown broker": alter(BROKER, "7", ("log.cleaner.threads", SET, "2")),
    "no broker": alter(BROKER, "one", ("log.cleaner.threads", SET, "2")),
    "read only": alter(BROKER, "1", ("log.dirs", SET, "/x")),
    "read only for all": alter(BROKER, "", ("node.id", SET, "2")),
    "bad broker value": alter(BROKER, "1", ("log.cleaner.threads", SET, "many")),
    "unknown broker key": alter(BROKER, "1", ("no.such", SET, "2"), validate_only=True),
    "unknown kind": alter(99, "x", ("a", SET, "b")),
    "logger of a stranger": alter(LOGGER, "7", ("root", SET, "INFO")),
    "nothing": {"resources": []},
    "same twice": {
        "resources": [
            {"resource_type": TOPIC, "resource_name": "altered", "configs": []},
            {"resource_type": TOPIC, "resource_name": "altered", "configs": []},
        ]
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_incremental_alter_refused(pair: Pair, case: str) -> None:
    pair.make_topic("altered")
    with agreement(pair) as both:
        both.same("IncrementalAlterConfigs", range(2), REFUSED[case])
        both.same("DescribeConfigs", 4, describe(TOPIC, "altered"), drop=in_order)


def test_alter_topic(pair: Pair) -> None:
    topic = pair.make_topic("changes")
    steps = (
        alter(TOPIC, topic, ("retention.ms", SET, "5000"), ("segment.bytes", SET, "2000000")),
        alter(TOPIC, topic, ("cleanup.policy", APPEND, "compact")),
        alter(TOPIC, topic, ("cleanup.policy", APPEND, "compact")),
        alter(TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")),
        alter(TOPIC, topic, ("retention.ms", DELETE, None)),
        alter(TOPIC, topic, ("retention.bytes", SET, "7"), validate_only=True),
        alter(TOPIC, topic, ("compression.type", SET, "zstd"), ("min.insync.replicas", SET, "1")),
    )
    with agreement(pair) as both:
        for step in steps:
            both.same("IncrementalAlterConfigs", 1, step)
            settled(pair, topic)
            both.same("DescribeConfigs", 4, describe(TOPIC, topic), drop=in_order)
        whole = {
            "resource_type": TOPIC,
            "resource_name": topic,
            "configs": [{"name": "retention.ms", "value": "1"}],
        }
        both.same("AlterConfigs", range(3), {"resources": [whole]})
        settled(pair, topic)
        both.same("DescribeConfigs", 4, describe(TOPIC, topic), drop=in_order)
        bad = {**whole, "configs": [{"name": "retention.ms", "value": "x"}]}
        unknown = {**whole, "resource_name": "never-was"}
        null = {**whole, "configs": [{"name": "retention.ms", "value": None}]}
        for resource in (bad, unknown, null):
            both.same("AlterConfigs", range(3), {"resources": [resource]})


def settled(pair: Pair, topic: str) -> None:
    """Wait until Kafka's broker has followed its controller: a topic made now is known only after what came before."""
    settled.number += 1  # type: ignore[attr-defined]
    pair.make_topic(f"{topic}-{settled.number}")  # type: ignore[attr-defined]


settled.number = 0  # type: ignore[attr-defined]


def test_alter_broker(pair: Pair) -> None:
    keys = ["log.cleaner.threads", "log.retention.ms", "message.max.bytes", "log.cleaner.backoff.ms"]
    topic = pair.make_topic("follows-the-broker")
    steps = (
        alter(BROKER, "", ("log.cleaner.threads", SET, "2"), ("log.retention.ms", SET, "7777")),
        alter(BROKER, "1", ("message.max.bytes", SET, "2000000"), ("log.retention.ms", SET, "8888")),
        alter(BROKER, "1", ("log.retention.ms", DELETE, None)),
        alter(BROKER, "", ("log.retention.ms", DELETE, None), ("log.cleaner.threads", DELETE, None)),
        alter(BROKER, "1", ("message.max.bytes", DELETE, None)),
    )
    with agreement(pair) as both:
        for step in steps:
            both.same("IncrementalAlterConfigs", 1, step)
            settled(pair, topic)
            for kind, name in ((BROKER, "1"), (BROKER, "")):
                both.same("DescribeConfigs", 4, describe(kind, name, keys), drop=in_order)
            both.same(
                "DescribeConfigs",
                4,
                describe(TOPIC, topic, ["retention.ms", "max.message.bytes"]),
                drop=in_order,
            )


def test_list_config_resources(pair: Pair) -> None:
    pair.make_topic("has-configs", retention_ms=5)

    def only_ours(answer: Any) -> Any:
        kept = [
            each for each in answer["config_resources"] if each["resource_name"] in {"has-configs", "1", ""}
        ]
        answer["config_resources"] = sorted(kept, key=str)
        return answer

    with agreement(pair) as both:
        both.same("ListConfigResources", 0, {}, drop=only_ours)
        for kinds in ([], [TOPIC], [BROKER], [TOPIC, BROKER], [LOGGER], [CLIENT_METRICS], [GROUP], [99]):
            both.same("ListConfigResources", 1, {"resource_types": kinds}, drop=only_ours)
