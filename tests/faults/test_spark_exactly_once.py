"""Queries of Spark under kills, from topic to topic: nothing lost, nothing twice, every batch whole or not at all.

A gate before the broker sees the requests of a transaction go by, and at the moment that is wanted somebody is killed
with -9: the driver before, while and after its commit is heard, a worker in the midst of a task, the broker between
the first row and the end. All the while a reader of committed rows looks on. In the end `history` judges what lies in
the logs and what the reader saw.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.seeds import count, seeded
from tests.faults.sound import check_batches
from tests.faults.spark import killing
from tests.faults.spark.arena import Arena
from tests.faults.spark.killing import DRIVER_KILLS, Kill
from tests.peers import jars
from tests.peers.kafka import KafkaServer
from tests.peers.ottla import OttlaServer
from tests.peers.server import Server

if TYPE_CHECKING:
    from tests.compat.spark.standalone import Standalone

KILLS = count("OTTLA_KILLS", 39)
KILLS_KAFKA = count("OTTLA_KILLS", 22)
KILLS_OF_EXECUTORS = count("OTTLA_KILLS", 10)
PER_SECOND = 150
BATCHES_BETWEEN_MAX = 4
pytestmark = pytest.mark.long  # each starts a Spark and kills it
FEW = {"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5"}


@pytest.fixture(autouse=True)
def _spark() -> None:
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed")


def ottla(directory: Path, settings: dict[str, str]) -> Server:
    return OttlaServer(directory, FEW | settings)


def kafka(directory: Path, settings: dict[str, str]) -> Server:
    return KafkaServer(directory, FEW | settings)


def under_fire(
    make_server: Callable[..., Server],
    kinds: Sequence[str],
    kills: Sequence[Kill],
    directory: Path,
    chance: random.Random,
    cluster: "Standalone | None" = None,
) -> Arena:
    arena = Arena(make_server, kinds, directory, chance, cluster=cluster)
    with arena.open(PER_SECOND):
        began = time.monotonic()
        for number, kill in enumerate(kills):
            if any(each in DRIVER_KILLS for each in kills[number:]):
                arena.prepare()
            arena.let_pass(chance.randint(0, BATCHES_BETWEEN_MAX))
            at = time.monotonic()
            kill(arena, chance)
            taken = time.monotonic() - at
            print(f"kill {number + 1} of {len(kills)}: {kill.__name__}, {taken:.1f} s", flush=True)
        seconds = (time.monotonic() - began) / len(kills)
        arena.drain()
        batches = arena.check()
    dealt = Counter(kill.__name__ for kill in kills)
    print(
        f"{sum(arena.feed.counts)} records, each once, in {batches} batches, each whole, under {dict(dealt)}"
    )
    print(f"{len(kills)} kills, {seconds:.1f} s each")
    return arena


def test_a_few_kills(tmp_path: Path) -> None:
    """Each sort once, with a copy and a count at the same time."""
    kills = [killing.driver_after, killing.worker, killing.broker_before]
    arena = under_fire(ottla, ["copy", "count"], kills, tmp_path, seeded(__file__))
    check_batches(arena.server.log_dir)
    output = arena.server.output_path.read_text()
    assert "Traceback" not in output, output[-4000:]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["copy", "count", "app"])
def test_many_kills(kind: str, tmp_path: Path) -> None:
    chance = seeded(__file__, OTTLA_KILLS=KILLS)
    arena = under_fire(ottla, [kind], killing.plan(KILLS, chance), tmp_path, chance)
    check_batches(arena.server.log_dir)
    output = arena.server.output_path.read_text()
    assert "Traceback" not in output, output[-4000:]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_kills_of_executors(tmp_path: Path) -> None:
    """On a cluster, where tasks run in other processes than the driver's, and are tried again on another executor."""
    from tests.compat.spark.standalone import Standalone

    chance = seeded(__file__, OTTLA_KILLS=KILLS_OF_EXECUTORS)
    kills = [killing.executor] * (KILLS_OF_EXECUTORS - 2) + [killing.driver_after, killing.driver_before]
    chance.shuffle(kills)
    with Standalone(tmp_path / "cluster") as cluster:
        under_fire(ottla, ["copy", "count"], kills, tmp_path, chance, cluster)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_many_kills_on_apache_kafka(tmp_path: Path) -> None:
    try:
        jars.classpath()
    except jars.KafkaAbsent as absent:
        pytest.skip(f"Apache Kafka {jars.VERSION}: {absent}")
    chance = seeded(__file__, OTTLA_KILLS=KILLS_KAFKA)
    kills = killing.plan(KILLS_KAFKA, chance, killing.KILLS_FOR_KAFKA)
    under_fire(kafka, ["copy", "count"], kills, tmp_path, chance)
