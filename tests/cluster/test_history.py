"""Three nodes under every trial, and a history of what clients were told and saw, in which nothing may be wrong.

acks=all, three replicas, two in sync; producers that are idempotent or transactional, readers of what is committed. The
anomalies are those of `ottla.sim.history`; the file stays where the test says, for `python -m ottla.sim history FILE`.
"""

import random
import threading
import time
from pathlib import Path

import pytest

from ottla.sim.history.op import Op
from ottla.sim.history.recorder import Recorder
from ottla.sim.history.verdict import Verdict, judge
from ottla.sim.history.workload import Process
from tests.cluster.conftest import create_topic
from tests.cluster.nemesis import CutCluster, Nemesis
from tests.cluster.switchboard import Switchboard
from tests.cluster.worker import RdkafkaClient
from tests.faults.seeds import count, seeded

PARTITIONS = 3
PROCESSES = 5
PAUSE_SECONDS = 0.02  # between two operations of a process
FINAL_SECONDS_MAX = 90.0


class Locked:
    """A recorder for several threads."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()

    def record(self, *what: object, **more: object) -> None:
        with self._lock:
            self._recorder.record(*what, **more)  # type: ignore[arg-type]

    @property
    def highest(self) -> dict[str, int]:
        with self._lock:
            return dict(self._recorder.highest)


def run(directory: Path, chance: random.Random, trials: "list[tuple[str, ...]]") -> tuple[Verdict, Nemesis]:
    """Play the trials under load, read everything in the end, and judge."""
    path = directory / "history.jsonl"
    print(f"history: {path}")
    with Switchboard() as board, path.open("w", buffering=1) as file:
        cluster = CutCluster(directory, board)
        try:
            cluster.start()
            topic = create_topic(cluster, PARTITIONS)
            create_internal(cluster)
            recorder = Recorder(file.write, time.monotonic_ns)
            shared = Locked(recorder)
            keys = [f"{topic}-{index}" for index in range(PARTITIONS)]
            stop = threading.Event()

            def work(process: Process) -> None:
                while not stop.wait(PAUSE_SECONDS):
                    process.step()

            processes = [
                Process(
                    number,
                    lambda name=f"writer-{number}" if number % 2 else None: RdkafkaClient(
                        cluster.bootstrap, name
                    ),
                    keys,
                    shared,  # type: ignore[arg-type]
                    random.Random(chance.randrange(1 << 30)).randrange,
                    transacts=number % 2 == 1,
                )
                for number in range(PROCESSES)
            ]
            threads = [
                threading.Thread(target=work, args=(process,), name=f"process-{process.number}", daemon=True)
                for process in processes
            ]
            for thread in threads:
                thread.start()
            nemesis = Nemesis(cluster, topic, chance, lambda: recorder.acknowledged)
            nemesis._progress()
            for name, *arguments in trials:
                getattr(nemesis, name)(*arguments)
            stop.set()
            for thread in threads:
                thread.join(120)
                assert not thread.is_alive(), f"{thread.name} does not come to an end"
            deadline = time.monotonic() + FINAL_SECONDS_MAX
            processes[0].read_all(lambda: time.monotonic() > deadline)
        finally:
            for node in cluster.nodes.values():
                node.kill()
    verdict = judge(map(Op.from_line, path.read_text().splitlines()))
    print(verdict)
    print("trials:", dict(nemesis.done))
    waits = sorted(nemesis.waits_s)
    print(f"twenty writes more took {waits[len(waits) // 2]:.2f} s, at most {waits[-1]:.2f} s")
    return verdict, nemesis


def create_internal(cluster: CutCluster) -> None:
    """Transactions have their topic before anything befalls it."""
    client = RdkafkaClient(cluster.bootstrap, "first")
    try:
        client._producer.init_transactions(30)
    finally:
        client.close()


WHOM = ("leader", "controller", "follower")
CUTS = ("silent", "outward", "inward", "broken")


@pytest.mark.timeout(400)
def test_nothing_is_wrong_after_a_few_trials(tmp_path: Path) -> None:
    chance = seeded(__file__)
    trials: list[tuple[object, ...]] = [("kill", whom) for whom in WHOM * 2]
    trials += [("pause", "leader", 3.0), ("pause", "controller", 6.0)]
    trials += [("cut", "silent", "leader", 4.0), ("cut", chance.choice(CUTS[1:]), "controller", 4.0)]
    chance.shuffle(trials)
    verdict, _ = run(tmp_path, chance, trials)  # type: ignore[arg-type]
    assert verdict.is_sound, str(verdict)
    assert verdict.counts["values acknowledged"] > 500


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_nothing_is_wrong_after_many_trials(tmp_path: Path) -> None:
    kills = count("OTTLA_KILLS", 100)
    chance = seeded(__file__, OTTLA_KILLS=kills)
    trials: list[tuple[object, ...]] = [("kill", WHOM[number % 3]) for number in range(kills)]
    for number in range(kills // 6):
        trials.append(("pause", WHOM[number % 3], chance.uniform(3, 10)))
        trials.append(("cut", CUTS[number % 4], chance.choice(WHOM), chance.uniform(2, 10)))
    trials += [("restart_all",)] * (kills // 30)
    chance.shuffle(trials)
    verdict, _ = run(tmp_path, chance, trials)  # type: ignore[arg-type]
    assert verdict.is_sound, str(verdict)
    assert verdict.counts["values acknowledged"] > 50 * kills
