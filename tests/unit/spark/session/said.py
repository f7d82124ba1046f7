"""What Spark 4.3 really said, shortened where it only repeats itself."""

IN_A_FUNCTION = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/app/orders.py", line 9, in price
    return 1 // (x - 3)
           ~~^^~~~~~~~~
ZeroDivisionError: integer division or modulo by zero
 SQLSTATE: 38000"""

IN_AN_RDD = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/srv/env/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 4327, in invoke
    run_process()
  File "/srv/env/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip/pyspark/util.py", line 158, in wrapper
    return f(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^
  File "/app/orders.py", line 34, in <lambda>
    frame.rdd.map(lambda x: x / 0)
                            ~~^~~
  File "/usr/lib/python3.11/fractions.py", line 620, in __truediv__
    return forward(a, b)
ZeroDivisionError: division by zero
 SQLSTATE: 38000"""

CHAINED = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/app/orders.py", line 20, in look_up
    return PRICES[key]
KeyError: 'pear'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/orders.py", line 22, in look_up
    raise ValueError("no price for pear:\\nask sales") from error
ValueError: no price for pear:
ask sales
 SQLSTATE: 38000"""

_QUERY = "id = 46a7d5cd-9071-49b3-9345-4ba008f8bf3a, runId = d9d02256-1e3b-425a-804c-c1bfe2262262"
_REPORT = f"""
=== Streaming Query ===
Identifier: [{_QUERY}]
Current Committed Offsets: {{}}
Current Available Offsets: {{RateStreamV2[rowsPerSecond=1]: 0}}

Current State: ACTIVE
Thread State: RUNNABLE

Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 46a7d5cd-9071-49b3-9345-4ba008f8bf3a, Append
"""


def query(inner: str) -> str:
    """What the end of a streaming query makes of an error."""
    return f"[STREAM_FAILED] Query [{_QUERY}] terminated with exception: {inner} SQLSTATE: XXKST{_REPORT}"


FOR_EACH_BATCH = query("""\
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. Reason: \
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/srv/env/lib/python3.11/site-packages/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/srv/env/lib/python3.11/site-packages/pyspark/sql/utils.py", line 163, in call
    self.func(DataFrame(jdf, wrapped_session_jdf), batch_id)
  File "/app/orders.py", line 41, in each
    {}["boom"]
    ~~^^^^^^^^
KeyError: 'boom'
 SQLSTATE: 39000""")

FAILURE_IN_FOR_EACH_BATCH = query("""\
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. Reason: \
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/app/orders.py", line 41, in each
    frame.select(price("x")).collect()
ottla.spark.failure.SparkFailure: ZeroDivisionError: division by zero
  File "/app/prices.py", line 116, in price
    return 1 / x
hint: mend it
 SQLSTATE: 39000""")

OURS = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to plan Python data source read: Traceback (most recent call last):
  File "/srv/env/lib/python3.11/site-packages/ottla/spark/source/batch.py", line 30, in partitions
    raise refused(code)
ottla.client.errors.Refused: orders: this server does not host this topic-partition (UNKNOWN_TOPIC_OR_PARTITION)
hint: create the topic, or check its name
 SQLSTATE: 38000"""

NO_COLUMN = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `idd` cannot be resolved. \
Did you mean one of the following? [`id`]. SQLSTATE: 42703;
'Project ['idd]
+- Range (0, 10, step=1, splits=Some(2))
"""

BY_ZERO = """\
[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If necessary \
set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22012
== DataFrame ==
"__rtruediv__" was called from
/app/orders.py:31
"""

NO_TABLE = """\
[TABLE_OR_VIEW_NOT_FOUND] The table or view `nothing` cannot be found. Verify the spelling and correctness of the \
schema and catalog.
Search path: [`system`.`builtin`, `system`.`session`, `spark_catalog`.`default`].
If you did not qualify the name with a schema, verify the current_schema() output. SQLSTATE: 42P01; line 1 pos 14;
'Project [*]
+- 'UnresolvedRelation [nothing], [], false
"""

CRASHED = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 0.0 (TID 0) (127.0.0.1 executor driver): org.apache.spark.SparkException: Python \
worker exited unexpectedly (crashed). Consider setting 'spark.python.worker.faulthandler.enabled' to 'true'.
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:1136)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
\t... 26 more

Driver stacktrace:"""

WRONG_TYPE = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "pyarrow/array.pxi", line 1217, in pyarrow.lib.Array.cast
  File "/srv/env/lib/python3.11/site-packages/pyarrow/compute.py", line 415, in cast
    return call_function("cast", [arr], options, memory_pool)
  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status
    raise convert_status(status)
pyarrow.lib.ArrowInvalid: Failed to parse string: 'abc' as a scalar of type int32
 SQLSTATE: 38000"""

NO_START = """\
An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.net.BindException: Cannot assign requested address: Service 'sparkDriver' failed after 16 retries (on a random \
free port)! Consider explicitly setting the appropriate binding address for the service 'sparkDriver'.
\tat java.base/sun.nio.ch.Net.bind0(Native Method)
"""

BAD_VALUE = """\
An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkIllegalArgumentException: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'many' in the config \
"spark.task.cpus" is invalid. It should be a/an 'decimal' value. SQLSTATE: 22022
\tat org.apache.spark.internal.config.ConfigHelpers$.toNumber(ConfigBuilder.scala:39)
"""

WRAPPED_VALUE = """\
Error while instantiating 'org.apache.spark.sql.internal.SessionStateBuilder'
\tat org.apache.spark.sql.classic.SparkSession$.instantiateSessionState(SparkSession.scala:1207)
Caused by: org.apache.spark.SparkIllegalArgumentException: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'many' in \
the config "spark.sql.shuffle.partitions" is invalid. It should be a/an 'int' value. SQLSTATE: 22022
\tat org.apache.spark.internal.config.ConfigHelpers$.toNumber(ConfigBuilder.scala:39)
"""

OTHER_SOURCES = query(
    "assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources requested by the "
    "query. Cannot continue."
)

OTHER_STATE = query("""\
[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing state key schema.
Please check number and type of fields.
Existing key_schema=StructType(StructField(_groupingexpression,LongType,true)) and new key_schema=StructType(…).
SQLSTATE: XXKST""")

OTHER_OPERATORS = query(
    "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match with "
    "the operator in state metadata. This likely to happen when user adds/removes/changes stateful operator of "
    "existing streaming query."
)

UPDATE_MODE = query("requirement failed: ottla does not support Update mode.")

NO_YARN = """\
Exception in thread "main" org.apache.spark.SparkException: When running with master 'yarn' either HADOOP_CONF_DIR or \
YARN_CONF_DIR must be set in the environment.
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:670)
"""

NO_KUBERNETES = """\
An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: External scheduler cannot be instantiated
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3198)
Caused by: io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred.
\tat io.fabric8.kubernetes.client.KubernetesClientException.launderThrowable(KubernetesClientException.java:143)
Caused by: java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)
"""

NO_PACKAGE = """\
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: org.example#connector;1.0: not found]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:545)
"""

OLD_JAVA = """\
Error: LinkageError occurred while loading main class org.apache.spark.launcher.Main
\tjava.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main has been compiled by a more recent version of \
the Java Runtime (class file version 61.0), this version only recognizes class file versions up to 55.0
"""

OTHER_PYTHON = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1100, in main
    check_python_version(infile)
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: \
3.9 than that in driver: 3.11, PySpark cannot run with different minor versions.
 SQLSTATE: 38000"""

NO_PYTHON = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most recent \
failure: Lost task 1.3 in stage 0.0 (TID 5) (10.0.0.7 executor 1): java.io.IOException: Cannot run program \
"./environment/bin/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
"""

NOT_INSTALLED = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 472, in loads
    return cloudpickle.loads(obj, encoding=encoding)
ModuleNotFoundError: No module named 'ottla'
 SQLSTATE: 38000"""

OWN_MODULE = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/app/orders.py", line 51, in price
    import pricing
ModuleNotFoundError: No module named 'pricing'
 SQLSTATE: 38000"""

OUT_OF_MEMORY = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 8.0 failed 1 times, most recent \
failure: Lost task 3.0 in stage 8.0 (TID 44) (127.0.0.1 executor driver): java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)
"""

LOST = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 3.0 (TID 9) (10.0.0.7 executor 1): ExecutorLostFailure (executor 1 exited caused by \
one of the running tasks) Reason: Command exited with code 137
Driver stacktrace:"""

FULL = """\
An error occurred while calling o77.start.
: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write(RawLocalFileSystem.java:253)
Caused by: java.io.IOException: No space left on device
"""
