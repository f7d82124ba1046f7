"""All scenes, one after the other, on one cluster; and the pieces of a decision without one."""

import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.scale import pieces, scenes
from bench.scale.estate import METADATA, Estate, Sizes, metadata_files
from ottla.sim.cluster.machine import Machine

QUICK = Sizes(brokers=6, partitions=80, topic_partitions=10)
_CROWDED = (10, 3)  # brokers that have the same partitions between them
_LOST = 2


def play(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every figure of every scene."""
    began = time.perf_counter()
    result: dict[str, Any] = {}
    estate = Estate(sizes)

    def scene(name: str, figures: scenes.Figures) -> None:
        result[name] = figures
        gc.collect()
        told = ", ".join(f"{key} {figure:.4g}" for key, figure in figures.items())
        tell(f"{time.perf_counter() - began:.0f} s, {name}: {told}")

    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        scene("build", scenes.build(estate))
        scene("failover", scenes.failover(estate))
        killed = next(each for each in estate.controllers.values() if not each.is_up)
        loaded = {"log": _load(killed)}
        scene("restart_log", scenes.restart(estate, snapshot=False))
        scene("restart_snapshot", scenes.restart(estate, snapshot=True))
        snapshotted = max(
            estate.controllers.values(), key=lambda each: sum(metadata_files(each, ".checkpoint").values())
        )
        loaded["snapshot"] = _load(snapshotted)
        loaded["snapshot"]["file_bytes"] = sum(metadata_files(snapshotted, ".checkpoint").values())
        result["loaded"] = loaded
        tell(f"{time.perf_counter() - began:.0f} s, loaded: {loaded}")
        lost = estate.whole[_LOST]
        scene("loss", scenes.loss(estate, lost, power=False))
        estate.rest(scenes.SETTLE_S)
        scene("back", scenes.back(estate, lost))
        estate.rest(scenes.SETTLE_S)
        scene("loss_power", scenes.loss(estate, lost, power=True))
    finally:
        estate.end()
        gc.enable()
        gc.unfreeze()
    del estate
    gc.collect()
    _measure_pieces(sizes, result)
    tell(f"{time.perf_counter() - began:.0f} s, pieces: {result['pieces']}")
    result["wall_s"] = time.perf_counter() - began
    result["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return result


def _measure_pieces(sizes: Sizes, result: dict[str, Any]) -> None:
    partitions, each = sizes.partitions, sizes.topic_partitions
    result["pieces"] = {}
    for brokers in (sizes.brokers, *_CROWDED):
        image = pieces.cluster(brokers, partitions, each)
        result["pieces"][str(brokers)] = pieces.loss(image, 1)
        if brokers == sizes.brokers:
            changed = max(1, partitions // 100)
            quarters = [partitions * quarter // 4 // each * each for quarter in (1, 2, 4)]
            result["growth"] = {"changed": changed, "micros": pieces.growth(image, changed, quarters)}
            counts = [count for count in (1, 10, 100, 1_000, 10_000) if count <= partitions]
            result["apply_cost"] = pieces.apply_cost(image, counts)
        del image
    whole = pieces.cluster(sizes.brokers, partitions, partitions)
    result["one_topic_micros"] = pieces.apply_cost(whole, [1])[1]


def _load(machine: Machine) -> dict[str, Any]:
    """Load a copy of a controller's metadata in a process that does nothing else."""
    with tempfile.TemporaryDirectory(prefix="scale-") as directory:
        target = Path(directory) / METADATA.rpartition("/")[2]
        target.mkdir()
        for name in machine.disk.list(METADATA):
            target.joinpath(name).write_bytes(machine.disk.read_bytes(f"{METADATA}/{name}"))
        done = subprocess.run(
            [sys.executable, "-m", "bench.scale.loading", directory],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
