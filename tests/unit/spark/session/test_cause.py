"""Every cause is told in one line, with a hint that says what to do."""

import pytest

from ottla.spark.cause import CAUSES, OF_PYTHON, cause
from ottla.spark.complaint import read
from ottla.spark.failure import judge
from tests.unit.spark.session import said

TABLE = {
    "too old a Java": (said.OLD_JAVA, "this Java is too old", "Java 17"),
    "no memory for Java": ("Invalid maximum heap size: -Xmxlots", "Invalid maximum heap", "512m"),
    "an option of Java's": ("Unrecognized VM option 'Nonsense'", "refused an option", "extraJavaOptions"),
    "a package that is not to be had": (said.NO_PACKAGE, "org.example#connector", "Maven"),
    "a port": (said.NO_START, "could not listen", "spark.driver.port"),
    "no such master": ("Could not parse Master URL: 'loc'", "no such master: loc", "spark://host:port"),
    "a silent master": ("All masters are unresponsive! Giving up.", "no master", "version"),
    "no YARN": (said.NO_YARN, "where YARN is", "HADOOP_CONF_DIR"),
    "no Kubernetes": (said.NO_KUBERNETES, "Connection refused", "kubectl"),
    "no image": ("Must specify the executor container image", "image", "container.image"),
    "a stopped session": ("Cannot call methods on a stopped SparkContext.", "was stopped", "session()"),
    "no Java any more": ("Answer from Java side is empty", "is gone", "spark.driver.memory"),
    "another Python": (said.OTHER_PYTHON, "another version of Python", "PYSPARK_PYTHON"),
    "no Python": (said.NO_PYTHON, "no ./environment/bin/python", "PYSPARK_PYTHON"),
    "no ottla on a worker": (said.NOT_INSTALLED, "has no ottla", "ottla[spark]"),
    "no module of the user's": (said.OWN_MODULE, "no module pricing", "every worker"),
    "what cannot travel": (
        "Could not serialize object: TypeError: cannot pickle '_thread.lock' object",
        "cannot pickle '_thread.lock'",
        "inside the function",
    ),
    "a Python that died": (said.CRASHED, "a Python process of Spark's died", "memory"),
    "a wrong type": (said.WRONG_TYPE, "'abc' as a scalar of type int32", "declared with"),
    "wrong columns": (
        "[UNSUPPORTED_CALL.WITHOUT_SUGGESTION] Cannot call the method \"getLong\" of the class "
        '"org.apache.spark.sql.vectorized.ArrowColumnVector$ArrowVectorAccessor".',
        "columns of other types",
        "declared with",
    ),
    "wrong names": (
        "[RESULT_COLUMN_NAMES_MISMATCH] Column names of the returned data do not match specified schema.",
        "Column names of the returned data",
        "declared with",
    ),
    "no memory": (said.OUT_OF_MEMORY, "Java heap space", "spark.executor.memory"),
    "a lost executor": (said.LOST, "an executor was lost", "its log"),
    "a full disk": (said.FULL, "a disk is full", "checkpoints"),
    "a place that is not ours": (
        "java.io.FileNotFoundException: /var/ck/offsets (Permission denied)",
        "/var/ck/offsets",
        "checkpointLocation",
    ),
    "no kafka": (
        "[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka. Please deploy the application as per…",
        "no format kafka",
        'format("ottla")',
    ),
    "no ottla": (
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: ottla. Make sure the provider name is correct.",
        "does not know the format ottla",
        "register()",
    ),
    "no column, and one near": (said.NO_COLUMN, "there is no column `idd`", "did you mean `id`?"),
    "no column": (
        "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] A column with name `a`.`b` cannot be resolved. SQLSTATE: 42703",
        "there is no column `a`.`b`",
        "columns",
    ),
    "update mode": (said.UPDATE_MODE, "update or complete mode", "write_batch"),
    "append mode": (
        "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append. This output mode is not "
        "supported for streaming aggregations without watermark on streaming DataFrames/DataSets. SQLSTATE: 42KDE",
        "Invalid streaming output mode: append",
        "withWatermark()",
    ),
    "no checkpoint": ("checkpointLocation must be specified either…", "remember", "checkpointLocation"),
    "other sources": (said.OTHER_SOURCES, "other sources", "new checkpointLocation"),
    "another state": (said.OTHER_STATE, "another state", "new checkpointLocation"),
    "other operators": (said.OTHER_OPERATORS, "another state", "new checkpointLocation"),
    "two with one checkpoint": (
        said.query("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs"),
        "another query is using",
        "of its own",
    ),
    "two of one name": (
        "Cannot start query with name n as a query with that name is already active in this SparkSession",
        "of this name",
        "queryName",
    ),
    "another mode": (
        'The data source "ottla" cannot be written in the "ErrorIfExists" mode. Please use either the "Append" or '
        '"Overwrite" mode instead.',
        "it cannot write in the mode ErrorIfExists",
        '.mode("append")',
    ),
    "a value": (said.BAD_VALUE, "spark.task.cpus cannot be many", "'decimal' value"),
    "a value, wrapped": (said.WRAPPED_VALUE, "spark.sql.shuffle.partitions cannot be many", "'int' value"),
    "a size": ("Failed to parse byte string: 12x", "no size: 12x", "512m"),
    "a number": (
        "spark.executor.cores should be int, but was two",
        "spark.executor.cores should be int, and is two",
        "setting",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message", "hint"), TABLE.values(), ids=TABLE)
def test_a_cause(text: str, message: str, hint: str) -> None:
    failure = judge(read(text))
    assert message in failure.message
    assert hint in failure.hint
    assert "\n" not in failure.message, "one line says it"
    assert "\tat " not in str(failure)
    assert str(failure).splitlines()[-1] == f"hint: {failure.hint}"
    assert text.strip() in failure.details


def test_every_row_is_tried() -> None:
    found = set()
    for text, _, _ in TABLE.values():
        complaint = read(text)
        fits = [each for each in OF_PYTHON + CAUSES if each.match(complaint) is not None]
        found.add(fits[0])
    assert found == {*OF_PYTHON, *CAUSES}


def test_a_function_of_the_users_may_say_anything() -> None:
    text = said.IN_A_FUNCTION.replace("integer division or modulo by zero", "java.lang.OutOfMemoryError: no")
    assert cause(read(text)) is None
    assert judge(read(text)).message == "ZeroDivisionError: java.lang.OutOfMemoryError: no"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("stream-1: the record ints-0@0 cannot be read: value: it is not JSON", "dead_letters=TOPIC"),
        (
            "map_values-1: the value of the record t-0@0 is null, which the function at /a.py:3 does not expect",
            "lambda value: value is not None",
        ),
    ],
)
def test_a_record_that_cannot_be_taken_in(words: str, hint: str) -> None:
    assert hint in judge(read(f"[USER_RAISED_EXCEPTION] {words} SQLSTATE: P0001")).hint
    ours = said.OURS.replace(
        "ottla.client.errors.Refused: orders: this server does not host this topic-partition "
        "(UNKNOWN_TOPIC_OR_PARTITION)\nhint: create the topic, or check its name",
        f"ottla.streams.errors.Unreadable: {words}",
    )
    assert hint in judge(read(ours)).hint


def test_what_nobody_knows() -> None:
    assert cause(read("something new")) is None
