"""Java, started as the process that Spark lives in; one for each program, as long as it lasts.

L1  Nothing of Java's reaches the terminal before it has started. If it does not, its last words become the failure.
L2  The environment is as it was once Java is started, but for PYSPARK_PYTHON, which PySpark goes on reading.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext, __version__
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from ottla.spark.complaint import read
from ottla.spark.defaults import AT_LAUNCH, launch_defaults
from ottla.spark.failure import SparkFailure, judge
from ottla.spark.java import find_java
from ottla.spark.line import calling
from ottla.spark.master import parse
from ottla.spark.muting import Muting
from ottla.world.children import children, kill
from ottla.world.overheard import Overheard
from ottla.world.shell import set_variable, variable, variables


def launch(asked: Mapping[str, str | None], java: str | None) -> None:
    """Start Java, unless it runs already or spark-submit has started it."""
    if variable("SPARK_REMOTE") or variable("SPARK_CONNECT_MODE_ENABLED"):
        raise SparkFailure(
            "this process uses Spark Connect, where a server makes the sessions",
            hint="make the session by SparkSession.builder.remote(…), and hand it to ottla.spark.register()",
        )
    # Otherwise tasks would run on whatever python3 is on the PATH.
    python = asked.get("spark.pyspark.python") or variable("PYSPARK_PYTHON") or sys.executable
    set_variable("PYSPARK_PYTHON", python)
    if SparkContext._gateway is not None:
        agree(asked, java)
    elif variable("PYSPARK_GATEWAY_PORT"):
        SparkContext._ensure_initialized()
    else:
        SparkContext._ensure_initialized(gateway=_gateway(asked, java))


def _gateway(asked: Mapping[str, str | None], java: str | None) -> Any:
    home = _spark_home()
    given = {key: value for key, value in asked.items() if value is not None}
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list((given | launch_defaults(given, is_configured=_has_logging(home))).items()))
    found = find_java(java)
    environment = {
        **(found.hiding_variables if _is_alone(asked, home) else found.variables),
        # The Python of tasks may be none of this machine's, and Spark's scripts want one that is.
        "PYSPARK_DRIVER_PYTHON": variable("PYSPARK_DRIVER_PYTHON") or sys.executable,
    }
    overheard = Overheard(Muting())
    before = children()
    try:
        with variables(environment), overheard.mouth() as descriptor:
            gateway = launch_gateway(conf, {"stderr": descriptor})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError:
        failure = judge(read("\n".join(overheard.last_words())), calling())
        failure.message = f"Spark's Java process did not start: {failure.message}"
        raise failure from None
    except BaseException:
        # After an interrupt nobody would ever connect to Java, and it would run on without its parent.
        for process in children() - before:
            kill(process)
        raise
    overheard.release()
    return gateway


def _spark_home() -> Path:
    """Return where the Spark is that fits this PySpark."""
    home = Path(_find_spark_home())
    version = ".".join(__version__.split(".")[:2])
    if not any(home.glob(f"jars/spark-core_*-{version}.*.jar")):
        raise SparkFailure(
            f"there is no Spark {version} in {home}, and this is PySpark {__version__}",
            hint="unset SPARK_HOME, and the Spark that came with PySpark is used",
        )
    return home


def _is_alone(asked: Mapping[str, str | None], home: Path) -> bool:
    """Whether all tasks run on this machine by the Python of this program, which has the PySpark of this Spark."""
    if (
        home.resolve() != Path(pyspark.__file__).parent.resolve()
        or variable("PYSPARK_PYTHON") != sys.executable
    ):
        return False
    if (master := asked.get("spark.master")) is not None:
        return parse(master).is_local
    # Who else may have named one.
    place = variable("SPARK_CONF_DIR")
    defaults = (Path(place) if place else home / "conf") / "spark-defaults.conf"
    return variable("PYSPARK_SUBMIT_ARGS") is None and not defaults.exists()


def _has_logging(home: Path) -> bool:
    """Whether somebody has set up what Spark says."""
    place = variable("SPARK_CONF_DIR")
    return (Path(place) if place else home / "conf").joinpath("log4j2.properties").exists()


def agree(asked: Mapping[str, str | None], java: str | None) -> None:
    """Refuse what the Java that runs cannot be any more."""
    system = java_packages().lang.System
    for key in AT_LAUNCH & asked.keys():
        have = system.getProperty(key)
        if asked[key] is not None and not (have or "").endswith(asked[key] or ""):
            raise too_late(key, asked[key], have)
    if java is not None:
        have = system.getProperty("java.home")
        if Path(have).resolve() != (home := find_java(java).home).resolve():
            raise too_late("java", str(home), have)


def java_packages() -> Any:
    """Return Java's own packages."""
    assert SparkContext._jvm is not None
    return SparkContext._jvm.java


def too_late(key: str, value: str | None, have: str | None) -> SparkFailure:
    """Return why something cannot be had of a Spark that runs."""
    return SparkFailure(
        f"{key} cannot become {value}: Spark runs already, with {have or 'none'}",
        hint="ask for it where the program makes its first session: Java is started once, and ends with the program",
    )
