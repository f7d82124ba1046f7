"""`ottla quorum` and `ottla cluster info` on quorums that are told: who leads, and who votes after all."""

import argparse
import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import cluster, quorum
from ottla.cli.error import OK
from ottla.client.admin import Quorum, QuorumReplica
from ottla.client.admin.cluster import Broker, ClusterDescription
from ottla.client.errors import Refused
from ottla.wire.errors import ErrorCode


def replica(id: int) -> QuorumReplica:
    return QuorumReplica(id, f"directory-{id}", 0, None, None)


def made_of(voters: tuple[int, ...], observers: tuple[int, ...] = (), leader: int = 1) -> Quorum:
    return Quorum(leader, 1, 0, tuple(map(replica, voters)), tuple(map(replica, observers)), {})


class ToldQuorum:
    """A quorum that refuses a voter, and may have it all the same."""

    def __init__(self, code: ErrorCode, *later: Quorum) -> None:
        self._code = code
        self._quorums = [made_of((1,), (4,)), *later]
        self.cluster = self

    async def quorum(self) -> Quorum:
        return self._quorums.pop(0) if len(self._quorums) > 1 else self._quorums[0]

    async def add_voter(self, *_: Any) -> None:
        raise Refused(self._code, about="voter 4")


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(admin: ToldQuorum) -> int:
        monkeypatch.setattr(quorum, "run_admin", lambda options, command: asyncio.run(command(admin)))
        monkeypatch.setattr(quorum, "LOOK_SECONDS", 0.001)
        monkeypatch.setattr(quorum, "LEADER_SECONDS", 0.1)
        options = argparse.Namespace(node=4, directory=None, endpoints=["CONTROLLER://h:1"])
        return quorum.add_voter(options)

    return run


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.DUPLICATE_VOTER])
def test_a_voter_that_was_added_though_the_leader_has_changed(
    code: ErrorCode, add: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(ToldQuorum(code, made_of((1,), (4,)), made_of((1, 4)))) == OK
    assert "node 4 votes" in capsys.readouterr().err


def test_a_voter_that_was_not_added(add: Any) -> None:
    with pytest.raises(Refused):
        add(ToldQuorum(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    with pytest.raises(Refused):
        add(ToldQuorum(ErrorCode.INVALID_REQUEST, made_of((1, 4))))


def test_the_controller_is_the_leader_of_the_quorum() -> None:
    async def told(value: Any) -> Any:
        return value

    brokers = tuple(Broker(id, "h", id) for id in (1, 2, 3))
    admin = SimpleNamespace(
        # Any broker takes what is for the controller, so this may be any.
        cluster=SimpleNamespace(
            describe=lambda **_: told(ClusterDescription("c", 3, brokers)),
            quorum=lambda: told(made_of((1, 2, 3), leader=2)),
        ),
        topics=SimpleNamespace(list=lambda **_: told({})),
        log_dirs=SimpleNamespace(describe=lambda _: told({})),
        features=SimpleNamespace(describe=lambda: told(SimpleNamespace(finalized={}, supported={}))),
    )
    data = asyncio.run(cluster._document(admin))  # type: ignore[arg-type]
    assert data["controller"] == 2
    assert [each["id"] for each in data["brokers"] if each["controller"]] == [2]
