"""The simulator itself: it repeats itself, it forgets what it should, and it says how to see a failure again."""

import hashlib

import pytest

from ottla.raft.election_state import ElectionState
from ottla.raft.event import Event
from ottla.raft.ready import Ready
from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import Address, Voter, Voters
from ottla.sim.__main__ import main
from ottla.sim.checkers.leader_keeps_log import LeaderKeepsLog
from ottla.sim.network import Network
from ottla.sim.quorum.disk import QuorumDisk
from ottla.sim.quorum.log import SimLog, entries_in
from ottla.sim.quorum.node import SimNode
from ottla.sim.quorum.report import step_line
from ottla.sim.quorum.simulation import shrink, simulate
from ottla.sim.quorum.snapshot import Content, read_snapshot, write_snapshot
from ottla.sim.quorum.world import World
from ottla.sim.schedule import Schedule
from ottla.sim.violation import Violation
from ottla.wire.batch import build_batch
from ottla.wire.record import Record
from ottla.world.entropy import SeededEntropy
from tests.sim.mutations import leads_before_own_commit


def batch(offset: int, epoch: int = 1) -> bytes:
    return bytes(build_batch([Record(offset, 0, None, b"x" * 20)], base_offset=offset, leader_epoch=epoch))


@pytest.mark.parametrize("scenario", ["torn-disks", "membership", "snapshots"])
def test_a_seed_repeats_itself(scenario: str) -> None:
    def trace(seed: int) -> str:
        digest = hashlib.sha256()

        def watch(now: int, node: SimNode, event: Event, ready: Ready) -> None:
            digest.update(step_line(now, node, event, ready).encode())

        assert simulate(scenario, seed, watch=watch) is None
        return digest.hexdigest()

    assert trace(5) == trace(5)
    assert trace(5) != trace(6)


def test_a_failure_is_shrunk_and_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leads_before_own_commit(monkeypatch)
    found = (simulate("leader-failure", seed) for seed in range(60))
    failure = next(each for each in found if each is not None and len(each.perils) > 2)
    smallest = shrink(failure)
    assert smallest.rule == failure.rule
    assert len(smallest.perils) < len(failure.perils)
    assert smallest.command.startswith("python -m ottla.sim quorum --scenario leader-failure --seed")
    again = simulate(smallest.scenario, smallest.seed, smallest.without)
    assert again is not None
    assert str(again) == str(smallest)
    words = smallest.command.removeprefix("python -m ottla.sim ").split()
    assert main([*words, "--steps", "5"]) == 1
    told = capsys.readouterr().out
    assert str(smallest) in told
    assert "VoteResponse" in told


def test_a_run_without_a_failure_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "--scenario", "first-election", "--seed", "3", "--seeds", "2"]) == 0
    assert "2 seeds from 3 on, all laws held" in capsys.readouterr().out


def test_what_is_synced_stays_and_a_prefix_of_the_rest() -> None:
    ends = set()
    for seed in range(200):
        disk = QuorumDisk()
        disk.write_state(1, ElectionState(1, 2))
        disk.append(1, batch(0))
        disk.sync(1)
        disk.write_state(2, ElectionState(2))
        disk.append(2, batch(1, 2))
        disk.append(3, batch(2, 2))
        disk.lose_power(SeededEntropy(seed), tears=True)
        assert disk.state in (ElectionState(1, 2), ElectionState(2))
        assert disk.log.end_offset in (1, 2, 3)
        # The log was touched after the state, so it has nothing that the state does not know of.
        assert disk.log.last[0] <= disk.state.epoch
        ends.add((disk.state.epoch, disk.log.end_offset))
    assert ends == {(1, 1), (2, 1), (2, 2), (2, 3)}


def test_torn_batches_are_not_believed() -> None:
    whole = batch(0) + batch(1)
    for size in range(len(whole)):
        assert len(entries_in(whole[:size])) == size // len(batch(0))
    damaged = bytearray(whole)
    damaged[len(batch(0)) + 40] ^= 4
    assert len(entries_in(damaged)) == 1


def test_a_log_behind_its_snapshot_begins_anew() -> None:
    disk = QuorumDisk()
    disk.append(1, batch(0))
    disk.sync(1)
    voters = Voters.of([Voter(1, bytes([1] * 16), (Address("C", "h", 1),))])
    id = SnapshotId(9, 4)
    disk.keep_snapshot(id, write_snapshot(id, Content(b"state", 1, voters)))
    disk.lose_power(SeededEntropy(1), tears=False)
    assert (disk.log.start_offset, disk.log.end_offset, disk.log.last) == (9, 9, (4, 9))
    content = read_snapshot(disk.log.snapshots[id])
    assert content == Content(b"state", 1, voters)


def test_half_a_snapshot_is_none() -> None:
    whole = write_snapshot(SnapshotId(9, 4), Content(b"state", 0, None))
    assert all(read_snapshot(whole[:size]) is None for size in range(len(whole)))


def test_links_are_cut_one_way() -> None:
    schedule = Schedule()
    network = Network(schedule, SeededEntropy(1))
    network.cut({1}, {2})
    arrived: list[str] = []
    network.send(1, 2, lambda: arrived.append("1 to 2"))
    network.send(2, 1, lambda: arrived.append("2 to 1"))
    while schedule.run_next():
        pass
    assert arrived == ["2 to 1"]
    network.heal()
    network.send(1, 2, lambda: arrived.append("1 to 2"))
    schedule.run_next()
    assert arrived == ["2 to 1", "1 to 2"]


def test_the_network_loses_and_repeats() -> None:
    schedule = Schedule()
    network = Network(schedule, SeededEntropy(1))
    network.loss, network.repeats = 0.3, 0.3
    arrived: list[int] = []
    for number in range(1_000):
        network.send(1, 2, lambda number=number: arrived.append(number))  # type: ignore[misc]
    while schedule.run_next():
        pass
    assert 600 < len(set(arrived)) < 800
    assert len(arrived) > len(set(arrived)) + 100
    assert arrived != sorted(arrived)


def test_a_leader_that_cuts_its_log_is_found_out() -> None:
    world = World(1)
    world.form((1, 1))
    world.settle()
    checker = LeaderKeepsLog()
    node = world.cluster.nodes[1]
    checker.wrote(node, Ready(1))
    with pytest.raises(Violation, match="a leader only appends"):
        checker.wrote(node, Ready(1, truncate_to=0))


def test_logs_read_whole_batches() -> None:
    log = SimLog()
    log.append(entries_in(batch(0) + batch(1) + batch(2)))
    size = len(batch(0))
    assert len(log.read(0, 1)) == size
    assert len(log.read(1, 2 * size)) == 2 * size
    assert log.read(3, 100) == b""
