"""`ottla topic`, `ottla cluster` and `ottla config` against real servers."""

from pathlib import Path

import pytest

from ottla.cli.error import FAILED, MISUSED, OK
from tests.client.command_line import CommandLine
from tests.compat.chosen import MakeTopic
from tests.peers.deadline import eventually
from tests.peers.server import Server


@pytest.fixture
def ottla(server: Server, tmp_path: Path) -> CommandLine:
    return CommandLine(server.bootstrap, tmp_path)


def test_the_life_of_a_topic(ottla: CommandLine, topic_name: str) -> None:
    made = ottla("topic", "create", topic_name, "-p", "2", "-c", "retention.ms=86400000", "-o", "json").json
    assert [(each["name"], each["partitions"], each["replication"], each["status"]) for each in made] == [
        (topic_name, 2, 1, "made")
    ]

    (found,) = ottla("topic", "describe", topic_name, "-o", "json").json
    assert found["id"] == made[0]["id"]
    assert found["settings"] == {"retention.ms": "86400000"}
    assert [each["partition"] for each in found["partitions"]] == [0, 1]
    assert found["partitions"][0] | {"leader_epoch": 0} == {
        "partition": 0, "leader": 1, "leader_epoch": 0, "replicas": [1], "in_sync": [1], "offline": [],
        "start_offset": 0, "end_offset": 0, "records": 0,
    }  # fmt: skip

    ottla("topic", "alter", topic_name, "-c", "segment.bytes=1048576", "--unset", "retention.ms")
    (found,) = ottla("topic", "describe", topic_name, "-o", "json").json
    assert found["settings"] == {"segment.bytes": "1048576"}

    assert f"{topic_name}: 5 partitions" in ottla("topic", "add-partitions", topic_name, "--add", "3").err
    listed = ottla("topic", "list", f"{topic_name[:-1]}?").lines
    assert listed[0].split() == ["NAME", "PARTITIONS", "ID"]
    assert [line.split()[:2] for line in listed[1:]] == [[topic_name, "5"]]
    assert topic_name in ottla("topic", "list", "--quiet").lines

    ottla("topic", "delete", topic_name, "--yes")
    eventually(lambda: topic_name not in ottla("topic", "list", "-q").lines)


def test_trim(ottla: CommandLine, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    ottla("produce", topic, "-p", "0", *map(str, range(10)))
    ottla("produce", topic, "-p", "1", *map(str, range(3)))
    planned = ottla("topic", "trim", topic, "--before", "-2", "--dry-run", "-o", "json").json
    assert [(each["start_offset"], each["new_start_offset"], each["deleted"]) for each in planned] == [
        (0, 8, 8),
        (0, 1, 1),
    ]
    refused = ottla.run("topic", "trim", topic, "--before", "3")
    assert refused.code == MISUSED and "--yes" in refused.err
    ottla("topic", "trim", topic, "--before", "4", "--partitions", "0", "--yes")
    (found,) = ottla("topic", "describe", topic, "-o", "json").json
    assert [each["start_offset"] for each in found["partitions"]] == [4, 0]
    ottla("topic", "trim", topic, "--before", "end", "--yes")
    (found,) = ottla("topic", "describe", topic, "-o", "json").json
    assert [each["records"] for each in found["partitions"]] == [0, 0]
    for place in ("99999", "+99999"):
        beyond = ottla.run("topic", "trim", topic, "--before", place, "--yes")
        assert beyond.code == FAILED and f"{topic}-0 ends at 10, before " in beyond.err
        assert "hint: --before end" in beyond.err
    assert "has no partition 7" in ottla.run("topic", "trim", topic, "--before", "1", "-p", "7", "-y").err


def test_topics_are_deleted_by_patterns(ottla: CommandLine, topic_name: str) -> None:
    names = [f"{topic_name}-{each}" for each in ("a1", "a2", "b1")]
    ottla("topic", "create", *names)
    planned = ottla("topic", "delete", f"{topic_name}-a*", "--dry-run").err.splitlines()
    assert planned == [f"{name} would be deleted" for name in names[:2]]
    ottla("topic", "delete", f"{topic_name}-a?", names[2], "--yes")
    eventually(lambda: ottla("topic", "list", "-q", f"{topic_name}-*").lines == [])
    nothing = ottla.run("topic", "delete", f"{topic_name}-*", "--yes")
    assert (nothing.code, nothing.err) == (FAILED, "no topic matches\n")
    assert ottla("topic", "delete", "__consumer_*", "--if-exists", "--yes").err == "no topic matches\n"


def test_what_is_there_and_what_is_not(ottla: CommandLine, topic: str) -> None:
    several = ottla.run("topic", "create", topic, f"{topic}-new", "-o", "json")
    assert several.code == FAILED
    assert [each["name"] for each in several.json] == [f"{topic}-new"]
    assert several.err.startswith(f"error: topic {topic}: ")
    content = ottla("topic", "create", topic, "--if-not-exists").lines
    assert content[1].split()[0] == topic and content[1].endswith("was there")

    missing = ottla.run("topic", "describe", f"{topic}-gone")
    assert missing.code == FAILED
    assert missing.err.splitlines() == [
        f"error: topic {topic}-gone: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION)",
        "hint: create the topic, or check its name",
    ]
    ottla("topic", "delete", f"{topic}-gone", f"{topic}-new", "--if-exists", "-y")
    assert ottla.run("topic", "delete", f"{topic}-gone", "-y").code == FAILED
    unasked = ottla.run("topic", "delete", topic)
    assert unasked.code == MISUSED and "hint: add --yes" in unasked.err
    assert f"{topic} would be deleted" in ottla("topic", "delete", topic, "--dry-run").err
    assert topic in ottla("topic", "list", "-q").lines


def test_bad_wishes(ottla: CommandLine, topic: str) -> None:
    assert ottla.run("topic", "create", f"{topic}-x", "-c", "retention.ms=long").code == FAILED
    assert ottla.run("topic", "create", f"{topic}-x", "-c", "retention.ms").code == MISUSED
    for arguments in (("topic", "create", f"{topic}-x"), ("topic", "alter", topic)):
        misspelt = ottla.run(*arguments, "-c", "retention.mss=3")
        assert misspelt.code == FAILED and misspelt.err.endswith("hint: did you mean retention.ms?\n")
    assert ottla.run("topic", "create", f"{topic}-x", "-r", "3").code == FAILED
    possible = ottla("topic", "create", f"{topic}-x", "--dry-run", "-o", "json").json
    assert possible[0]["status"] == "possible"
    assert f"{topic}-x" not in ottla("topic", "list", "-q").lines
    assert ottla.run("topic", "alter", topic).code == MISUSED
    assert ottla.run("topic", "add-partitions", topic, "--total", "1").code == FAILED


def test_settings(ottla: CommandLine, topic: str) -> None:
    resource = f"topic/{topic}"
    assert resource in ottla("config", "list").lines
    ottla("config", "set", resource, "retention.ms=1000", "cleanup.policy=delete")
    ottla("config", "set", resource, "cleanup.policy+=compact")
    found = {each["setting"]: each for each in ottla("config", "describe", resource, "-o", "json").json}
    assert found["retention.ms"]["value"] == "1000"
    assert found["retention.ms"]["source"] == "topic"
    assert found["cleanup.policy"]["value"] == "delete,compact"
    ottla("config", "set", resource, "cleanup.policy-=delete")
    ottla("config", "unset", resource, "retention.ms")
    (one,) = ottla("config", "describe", resource, "cleanup.policy", "-o", "json").json
    assert one["value"] == "compact"
    ottla("config", "set", resource, "retention.ms=7", "--dry-run")
    everything = ottla("config", "describe", resource, "--all", "--docs", "-o", "json").json
    by_name = {each["setting"]: each for each in everything}
    assert by_name["retention.ms"]["source"] == "default" and by_name["retention.ms"]["meaning"]
    broker = ottla("config", "describe", "broker/1", "node.id").lines
    assert broker[1].split()[:2] == ["node.id", "1"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("describe", "nonsense/x"), MISUSED),
        (("describe", "topic"), MISUSED),
        (("describe", "broker/one"), MISUSED),
        (("describe", "broker/77"), FAILED),
        (("set", "broker/default", "nonsense"), MISUSED),
        (("describe", "broker/1", "no.such.setting"), MISUSED),
    ],
)
def test_settings_of_nothing(arguments: tuple[str, ...], code: int, ottla: CommandLine) -> None:
    outcome = ottla.run("config", *arguments)
    assert outcome.code == code, outcome
    assert outcome.err.startswith("error: ")
    assert "admin." not in outcome.err, "a shell has no Python"


def test_the_cluster(ottla: CommandLine, server: Server, topic: str) -> None:
    found = ottla("cluster", "info", "-o", "json").json
    assert found["cluster"] == server.cluster_id
    assert [(each["id"], each["port"], each["fenced"]) for each in found["brokers"]] == [
        (1, server.port, False)
    ]
    assert found["quorum"]["leader"] == 1
    assert found["brokers"][0]["leaders"] == found["partitions"] > 0
    assert "metadata.version" in {each["feature"] for each in found["features"]}
    assert f"cluster           {server.cluster_id}" in ottla("cluster", "info").lines
    assert ottla("cluster", "info", "-o", "yaml").lines[0].startswith("cluster: ")


def test_nobody_there(ottla: CommandLine) -> None:
    outcome = ottla.run("topic", "list", "-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=300")
    assert outcome.code == FAILED
    first, hint = outcome.err.splitlines()
    assert first.startswith("error: no broker of 127.0.0.1:1 answered within 0.3 s")
    assert hint.startswith("hint: ")
    assert outcome.out == ""


def test_settings_of_the_client(ottla: CommandLine) -> None:
    assert ottla.run("-X", "client.id=a", "topic", "list", "-X", "retries=3").code == OK
    for setting in ("linger.ms=5", "nonsense=1", "retries=many"):
        outcome = ottla.run("topic", "list", "-X", setting)
        assert outcome.code == MISUSED, outcome
        assert setting.partition("=")[0] in outcome.err
    warned = ottla.run_process("topic", "list", "-X", "metrics.num.samples=3")
    assert warned.err == "warning: without effect in this client: metrics.num.samples\n"


def test_profiles_name_the_cluster(ottla: CommandLine, server: Server) -> None:
    nowhere = {"OTTLA_BOOTSTRAP": ""}
    assert ottla.run("profile", "set", "here", f"bootstrap={server.bootstrap}", "output=json").code == OK
    assert ottla.run("cluster", "info", env=nowhere).json["cluster"] == server.cluster_id
    assert ottla.run("--profile", "there", "cluster", "info", env=nowhere).code == MISUSED


def test_names_are_completed(ottla: CommandLine, topic: str) -> None:
    assert ottla("__complete", "topic", "describe", topic[:-1]).lines == [topic]
    assert ottla("__complete", "config", "describe", f"topic/{topic[:-1]}").lines == [f"topic/{topic}"]
    assert ottla("__complete", "-b", "127.0.0.1:1", "topic", "describe", "").lines == []
