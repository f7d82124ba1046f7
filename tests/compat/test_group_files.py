"""Groups, offsets, transactions and share groups go both ways: what one server wrote, the other goes on with.

A succession goes there and back: the first server leaves a heritage, the second finds all of it, goes on with it,
leaves one of its own, and gives both back. Since both did the same, their records have to be the same, too, as
kafka-dump-log reads them.
"""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.compat import heritage
from tests.compat.answers import Side
from tests.compat.chosen import CHOSEN, SERVERS
from tests.compat.dumped import Dump, differences
from tests.compat.heirs import go_on
from tests.compat.heritage import RECORDS, Clan, Heritage
from tests.compat.rows import Scene
from tests.compat.test_groups import member
from tests.peers.server import Server

pytestmark = pytest.mark.usefixtures("apache_kafka")

# Where Kafka stands in for Ottla, it succeeds itself, which shows that the test asks nothing impossible.
SUCCESSIONS = [
    pytest.param(CHOSEN, "kafka", "stopped"),
    pytest.param("kafka", CHOSEN, "stopped", marks=pytest.mark.long),
    pytest.param(CHOSEN, "kafka", "killed", marks=pytest.mark.long),
    pytest.param("kafka", CHOSEN, "killed", marks=pytest.mark.long),
]
PROTOCOLS = ("classic", "consumer")


@pytest.mark.parametrize(("first", "second", "ending"), SUCCESSIONS)
def test_succession(first: str, second: str, ending: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    old, new = Clan("old"), Clan("new")
    server = SERVERS[first](tmp_path, heritage.SETTINGS)
    with server:
        left = leave(server, old, names)
        read_some(server, old, range(RECORDS // 2))
        heritage.be_late(Scene(Side(server), names), old)
        if ending == "killed":
            server.kill()
    heir = SERVERS[second](tmp_path, like=server)
    with heir:
        scene = Scene(Side(heir), names)
        assert left.differences(Heritage.take(scene, old)) == []
        read_some(heir, old, range(RECORDS // 2, RECORDS))
        go_on(scene, old)
        left = leave(heir, new, names)
        heritage.be_late(scene, new)
        if ending == "killed":
            heir.kill()
    with SERVERS[first](tmp_path, like=heir) as back:
        scene = Scene(Side(back), names)
        assert left.differences(Heritage.take(scene, new)) == []
        go_on(scene, new)
    dump = Dump(back.log_dir)
    assert differences(dump.written("old", names), dump.written("new", names)) == []


def leave(server: Server, clan: Clan, names: dict[str, Any]) -> Heritage:
    """Have a server write a heritage."""
    scene = Scene(Side(server), names)
    heritage.fill(scene, clan)
    return Heritage.take(scene, clan)


def read_some(server: Server, clan: Clan, expected: range) -> None:
    """Real consumers of both protocols read a part of a topic, and remember where they stopped."""
    for protocol in PROTOCOLS:
        consumer = member(server.bootstrap, f"{protocol}-readers", protocol)
        consumer.subscribe([clan.read])
        seen: list[int] = []
        deadline = time.monotonic() + 30
        while len(seen) < len(expected):
            assert time.monotonic() < deadline, f"only {seen} of {expected}"
            found = consumer.consume(len(expected) - len(seen), 0.2)
            assert not any(each.error() for each in found)
            seen += [int(each.value() or b"") for each in found]
        consumer.commit(asynchronous=False)
        consumer.close()
        assert seen == list(expected)
