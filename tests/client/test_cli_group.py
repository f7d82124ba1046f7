"""`ottla group` against real servers."""

import asyncio
from pathlib import Path

import pytest

from ottla.cli.error import FAILED, MISUSED
from ottla.client import ShareConsumer
from tests.client.command_line import CommandLine
from tests.compat.chosen import MakeTopic
from tests.peers.deadline import eventually
from tests.peers.server import Server


@pytest.fixture
def ottla(server: Server, tmp_path: Path) -> CommandLine:
    return CommandLine(server.bootstrap, tmp_path)


@pytest.fixture
def topic(ottla: CommandLine, make_topic: MakeTopic) -> str:
    """Two partitions, of ten and five records, a minute apart."""
    name = make_topic(2)
    for partition, count in ((0, 10), (1, 5)):
        lines = (f'{{"value": "{n}", "timestamp": {1_760_000_000_000 + n * 60_000}}}\n' for n in range(count))
        ottla("produce", name, "-f", "json", "-p", str(partition), stdin="".join(lines))
    return name


@pytest.fixture
def group(ottla: CommandLine, topic: str) -> str:
    """A group that has read everything."""
    assert len(ottla("consume", topic, "-g", f"{topic}-g", "-e").lines) == 15
    return f"{topic}-g"


def committed(ottla: CommandLine, group: str) -> dict[int, int]:
    (found,) = ottla("group", "describe", group, "-o", "json").json
    return {each["partition"]: each["committed"] for each in found["offsets"]}


def test_listing(ottla: CommandLine, group: str) -> None:
    found = {each["group"]: each for each in ottla("group", "list", "-o", "json").json}
    assert found[group] == {
        "group": group, "type": "classic", "state": "Empty", "protocol": "consumer", "coordinator": 1,
    }  # fmt: skip
    assert group in ottla("group", "list", "--state", "empty", "--type", "classic", "-q").lines
    assert group not in ottla("group", "list", "--state", "stable", "-q").lines
    assert group not in ottla("group", "list", "--type", "share", "-q").lines
    assert ottla("__complete", "group", "describe", group).lines == [group]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describing_members_and_lag(protocol: str, ottla: CommandLine, topic: str) -> None:
    group = f"{topic}-{protocol}"
    settings = ("-X", f"group.protocol={protocol}", "-X", "client.id=reader")
    process = ottla.start("consume", topic, "-g", group, *settings)
    try:
        assert process.stdout is not None
        for _ in range(15):
            process.stdout.readline()
        ottla("produce", topic, "-p", "1", "new")
        process.stdout.readline()

        def is_done() -> bool:
            (found,) = ottla("group", "describe", group, "-o", "json").json
            return [(each["committed"], each["lag"]) for each in found["offsets"]] == [(10, 0), (6, 0)]

        eventually(is_done)
        (found,) = ottla("group", "describe", group, "-o", "json").json
        assert (found["type"], found["state"]) == (protocol, "Stable")
        (member,) = found["members"]
        assert member["client_id"] == "reader" and member["assignment"] == {topic: [0, 1]}
        assert {each["member"] for each in found["offsets"]} == {member["member"]}
        text = ottla("group", "describe", group).lines
        assert "members      1" in text and "lag          0" in text

        refused = ottla.run("group", "reset", group, "--to", "start", "--yes")
        assert refused.code == FAILED
        assert "has 1 members" in refused.err and "hint: stop them first" in refused.err
        assert ottla.run("group", "delete", group, "--yes").code == FAILED
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--to", "start"), {0: 0, 1: 0}),
        (("--to", "3"), {0: 3, 1: 3}),
        (("--to", "8"), {0: 8, 1: 5}),
        (("--to", "-2"), {0: 8, 1: 3}),
        (("--to", "@1760000120000"), {0: 2, 1: 2}),
        (("--to", "@now"), {0: 10, 1: 5}),
        (("--shift", "-4"), {0: 6, 1: 1}),
        (("--shift", "-7"), {0: 3, 1: 0}),
        (("--to", "start", "-p", "1"), {0: 10, 1: 0}),
    ],
)
def test_resetting(
    arguments: tuple[str, ...], expected: dict[int, int], ottla: CommandLine, topic: str, group: str
) -> None:
    planned = ottla("group", "reset", group, *arguments, "--dry-run", "-o", "json").json
    assert {0: 10, 1: 5, **{each["partition"]: each["new"] for each in planned}} == expected
    assert committed(ottla, group) == {0: 10, 1: 5}
    ottla("group", "reset", group, *arguments, "--topic", topic, "--yes")
    assert committed(ottla, group) == expected


def test_resetting_what_is_not_there(ottla: CommandLine, topic: str) -> None:
    fresh = f"{topic}-fresh"
    nothing = ottla.run("group", "reset", fresh, "--to", "start", "--yes")
    assert nothing.code == FAILED and "hint: name the topics with --topic" in nothing.err
    ottla("group", "reset", fresh, "--to", "4", "--topic", topic, "--yes")
    assert committed(ottla, fresh) == {0: 4, 1: 4}
    unasked = ottla.run("group", "reset", fresh, "--to", "start")
    assert unasked.code == MISUSED and "--yes" in unasked.err
    assert ottla.run("group", "reset", fresh, "--to", "nowhere", "-y").code == MISUSED
    assert ottla.run("group", "reset", fresh, "-y").code == MISUSED


def test_deleting(ottla: CommandLine, topic: str, group: str) -> None:
    other = f"{topic}-other"
    ottla("topic", "create", other)
    ottla("group", "reset", group, "--to", "0", "-t", other, "--yes")
    assert "would delete" in ottla("group", "delete", group, "--dry-run").err
    ottla("group", "delete", group, "--topic", topic, "--yes")
    (found,) = ottla("group", "describe", group, "-o", "json").json
    assert {each["topic"] for each in found["offsets"]} == {other}
    ottla("group", "delete", group, "--yes")
    assert group not in ottla("group", "list", "-q").lines
    assert ottla.run("group", "delete", group, "--yes").code == FAILED


def test_a_group_whose_topic_is_gone(ottla: CommandLine, topic: str) -> None:
    doomed, group = f"{topic}-doomed", f"{topic}-doomed-group"
    ottla("topic", "create", doomed)
    ottla("group", "reset", group, "--to", "0", "--topic", topic, "--yes")
    ottla("group", "reset", group, "--to", "0", "--topic", doomed, "--yes")
    ottla("topic", "delete", doomed, "--yes")
    eventually(lambda: doomed not in ottla("topic", "list", "-q").lines)
    (found,) = ottla("group", "describe", group, "-o", "json").json
    assert [each["lag"] for each in found["offsets"] if each["topic"] == topic] == [10, 5]


def test_share_groups(ottla: CommandLine, bootstrap: str, topic: str) -> None:
    """The start of a share group is shown, moved and forgotten as offsets of others are."""
    group = f"{topic}-share"
    ottla("config", "set", f"group/{group}", "share.auto.offset.reset=earliest")

    async def read() -> int:
        count = 0
        async with ShareConsumer(bootstrap, group_id=group) as consumer:
            await consumer.subscribe([topic])
            async with asyncio.timeout(30):
                while count < 15:
                    count += len(await consumer.poll(timeout=0.5))
                await consumer.commit()
        return count

    assert asyncio.run(read()) == 15

    def described(field: str) -> dict[int, int]:
        (found,) = ottla("group", "describe", group, "-o", "json").json
        assert found["type"] == "share"
        return {each["partition"]: each[field] for each in found["offsets"]}

    # The start itself moves on only with what is done next.
    eventually(lambda: described("lag") == {0: 0, 1: 0})
    assert group in ottla("group", "list", "--type", "share", "-q").lines
    eventually(lambda: ottla.run("group", "reset", group, "--to", "2", "-t", topic, "-y").code == 0)
    assert described("committed") == {0: 2, 1: 2}
    ottla("group", "delete", group, "--topic", topic, "--yes")
    assert described("committed") == {}
    ottla("group", "delete", group, "--yes")
