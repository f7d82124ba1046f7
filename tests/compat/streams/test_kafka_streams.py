"""Kafka Streams is the judge of semantics: its own topologies and ours, on the same random records, write the same.

`pytest -k NAME` runs one topology. OTTLA_SEED is the seed of the records, OTTLA_RECORDS how many there are.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.streams import App
from tests.compat.absence import skip_aloud
from tests.compat.streams.aggregates import AGGREGATES
from tests.compat.streams.comparison import Comparison, difference, given, results, written
from tests.compat.streams.judge import HERE, Judge, absent
from tests.compat.streams.processors import PROCESSORS
from tests.compat.streams.records import records
from tests.compat.streams.stateless import STATELESS
from tests.compat.streams.stream_joins import STREAM_JOINS
from tests.compat.streams.tables import TABLES
from tests.compat.streams.windows import WINDOWS

COMPARISONS = STATELESS | AGGREGATES | WINDOWS | STREAM_JOINS | TABLES | PROCESSORS
# What Spark has time for under `make test`.
ON_SPARK = ("chain_of_stateless", "hopping_emit_on_close", "outer_join_streams", "processor_with_a_timer")
SECONDS_MAX = 600
# The first one waits for the jars, and for Spark.
pytestmark = pytest.mark.timeout(SECONDS_MAX)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Kafka Streams; without it the test is skipped, and says so."""
    reason = absent()
    if reason is not None:
        skip_aloud(reason)
    with Judge(tmp_path_factory.mktemp("judge")) as running:
        yield running


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A session of one core for `app.test`, which ends with this module."""
    from pyspark import SparkContext

    from ottla.spark import SparkFailure, session
    from ottla.spark.java import find_java
    from tests.peers.kafka import SHORT_LIVED

    try:
        find_java()
    except SparkFailure as failure:
        skip_aloud(failure.message)
    place = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.extraJavaOptions": " ".join(each for each in SHORT_LIVED if each.startswith("-XX")),
        "spark.local.dir": str(place / "local"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
    }
    made = session("tests", "local[2]", **settings)
    yield
    made.stop()
    # Java would stay, and take memory from the tests of other folders.
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(20)


def compare(judge: Judge, name: str, on: str, count: int) -> None:
    """Give one topology the same records on both sides."""
    seed = int(os.environ.get("OTTLA_SEED") or random.SystemRandom().randrange(1 << 32))
    count = int(os.environ.get("OTTLA_RECORDS") or count)
    replay = f"OTTLA_SEED={seed} OTTLA_RECORDS={count} pytest {Path(__file__).name} -k '{name}-{on}'"
    comparison: Comparison = COMPARISONS[name]
    shape = comparison.shape_on(on)
    rows = records(shape, seed, count)
    wanted = judge.run(name, rows, comparison.stores)
    app = App(f"judged-{name.replace('_', '-')}")
    comparison.build(app)
    found = written(app.test(given(rows, shape), on=on))
    reduced = comparison.reduced
    differs = difference(results(wanted, reduced), results(found, reduced))
    assert differs is None, f"{name}: {differs}\nto replay: {replay}"
    assert wanted, "nothing was written, so nothing was compared"


@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-python") for name in COMPARISONS])
def test_the_reference_agrees(judge: Judge, name: str) -> None:
    compare(judge, name, "python", 400)


@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-spark") for name in ON_SPARK])
def test_spark_agrees(judge: Judge, spark: None, name: str) -> None:
    compare(judge, name, "spark", 200)


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-python") for name in COMPARISONS])
def test_the_reference_agrees_on_many_records(judge: Judge, name: str) -> None:
    compare(judge, name, "python", 10_000)


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}-spark") for name in COMPARISONS])
def test_spark_agrees_on_many_records(judge: Judge, spark: None, name: str) -> None:
    compare(judge, name, "spark", 10_000)


def test_both_sides_have_the_same_topologies() -> None:
    text = "".join(path.read_text() for path in (HERE / "java").glob("*Topologies.java"))
    twins = {line.split('"')[1] for line in text.splitlines() if "ALL.put(" in line}
    assert twins == COMPARISONS.keys()


def test_records_are_the_same_for_a_seed() -> None:
    for comparison in COMPARISONS.values():
        one, other = (records(comparison.shape, 7, 50) for _ in range(2))
        assert one == other
        assert len(one) == 50
