"""One Spark and one broker for the whole folder; without Java it is skipped, and says so."""

import itertools
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_SECONDS_MAX = 20.0
# A session that lives for a minute: the optimising compiler and a parallel collector only get in its way.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_serial = itertools.count(1)
_reasons: set[str] = set()


# What `make test` has time for; the others run under `make compat`.
SHORT = frozenset(
    {
        "test_sink.py",
        "test_sink_early.py",
        "test_sink_expiry.py",
        "test_source_batch.py",
        "test_streams_agreement_functions.py",
        "test_streams_agreement_json.py",
        "test_streams_agreement_plans.py",
        "test_streams_once.py",
        "test_streams_stateless.py",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "spark" and item.path.parent.parent.name == "tests":
            if item.path.name not in SHORT:
                item.add_marker(pytest.mark.long)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in sorted(_reasons):
        terminalreporter.write_line(f"tests on Spark skipped: {reason}")


def _absent() -> str | None:
    """Why there is no Spark to be had here, or None."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed"
    from ottla.spark import SparkFailure
    from ottla.spark.java import find_java

    try:
        find_java()
    except SparkFailure as failure:
        return failure.message
    return None


@pytest.fixture(scope="session")
def on_spark() -> None:
    """Skips the test where Spark cannot be run."""
    absent = _absent()
    if absent is not None:
        _reasons.add(absent)
        pytest.skip(absent)


@pytest.fixture(scope="session")
def spark(on_spark: None, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session of two cores; tests share it, and name their tables and queries apart."""
    from pyspark import SparkContext

    from ottla.spark import session

    place = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.local.dir": str(place / "local"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
    }
    made = session("tests", "local[2]", **settings)
    yield made
    made.stop()
    # Java would stay, and take memory from the tests of other folders.
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(STOP_SECONDS_MAX)


@pytest.fixture(scope="module", autouse=True)
def apps_are_tested_on_spark() -> Iterator[None]:
    """What `App.test` runs on unless told is Spark in this folder, which is here to prove it."""
    if find_spec("pyspark") is None:
        yield
        return
    from ottla.streams import App

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(App.test.__kwdefaults__, "on", "spark")
        yield


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A broker that all tests share; `broker.bootstrap` is its address."""
    with Broker() as running:
        yield running


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:150].strip("-") + f"-{next(_serial)}"
