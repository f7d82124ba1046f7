"""The benchmark of a large cluster, on a tiny one: every scene comes to its end, with figures of the right kind."""

import json
import time
from pathlib import Path

from bench.scale.page import write
from bench.scale.play import QUICK, play
from bench.scale.timeline import MeasuredTimeline
from bench.scale.weight import weigh
from ottla.sim.loop import Process


def test_all_scenes_on_a_tiny_cluster(tmp_path: Path) -> None:
    result = play(QUICK, lambda text: None)
    assert result["build"]["records"] > QUICK.partitions
    assert result["failover"]["fenced"] == 0
    assert 0 < result["failover"]["leads_s"] <= result["failover"]["alter_partition_s"] < 10
    assert result["loaded"]["log"]["partitions"] == QUICK.partitions
    for name, earliest_s, latest_s in (("loss", 0.0, 1.0), ("loss_power", 1.4, 3.0)):
        loss = result[name]
        # One a replica and one for the broker, less those that a slow machine had taken out of sync before.
        assert loss["records"] > loss["led"] > 0 < loss["replicas"] - loss["led"]
        assert earliest_s < loss["first_leaders_s"] <= loss["known_last_s"] < latest_s
    assert result["back"]["led"] == result["loss"]["led"]
    write(
        tmp_path, result | {"command": "python -m bench.scale --quick", "machine": {}, "sizes": vars(QUICK)}
    )
    page = (tmp_path / "scale.md").read_text()
    assert page.startswith(f"# {QUICK.brokers} brokers, {QUICK.partitions} partitions")
    assert json.loads((tmp_path / "scale.json").read_text())["loss"] == result["loss"]


def test_who_computes_is_late_and_nobody_else() -> None:
    timeline = MeasuredTimeline()
    busy, idle = Process(timeline, "busy"), Process(timeline, "idle")
    timeline.charge(busy)
    happened: dict[str, float] = {}

    def compute() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.05:
            pass
        idle.call_soon(note, "told")

    def note(what: str) -> None:
        happened[what] = timeline.now

    busy.call_at(1.0, compute)
    busy.call_at(1.01, note, "held up")
    idle.call_at(1.01, note, "on time")
    timeline.run(lambda: len(happened) == 3, 10, 100)
    assert happened["on time"] == 1.01
    assert min(happened["held up"], happened["told"]) >= 1.05
    assert timeline.spent["busy"].longest_s >= 0.05
    assert set(timeline.spent) == {"busy"}


def test_what_is_shared_is_weighed_once() -> None:
    large = bytes(10_000)
    assert 10_000 < weigh([large, large], (large,)) < 11_000
    assert weigh([large], without=[large]) < 1_000
