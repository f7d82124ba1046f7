"""What a session is set to where nobody says otherwise, and how settings are written.

D1  Whoever names a setting, in the call, by spark-submit or in spark-defaults.conf, is obeyed; these fill what is left.
D2  A setting of None leaves the matter to Spark's own default.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ottla.spark.failure import SparkFailure
from ottla.spark.master import Master

_LOGGING = Path(__file__).parent / "log4j2.properties"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_BY_FILE_SYSTEM = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

# Read when Java starts, and never again.
AT_LAUNCH = frozenset(
    {
        "spark.driver.memory",
        "spark.driver.extraJavaOptions",
        "spark.driver.extraClassPath",
        "spark.jars.packages",
    }
)


def spelled(settings: Mapping[str, Any]) -> dict[str, str | None]:
    """Return settings as Spark writes them: `spark_sql_ansi_enabled=False` is `spark.sql.ansi.enabled` of `false`."""
    found: dict[str, str | None] = {}
    for name, value in settings.items():
        if not name.startswith(("spark.", "spark_")):
            near = get_close_matches(name, ("name", "master", "java"), n=1)
            raise SparkFailure(
                f"session() takes no {name!r}",
                hint=f"did you mean {near[0]}?"
                if near
                else "settings of Spark's begin with spark. or spark_",
            )
        key = name if "." in name else name.replace("_", ".")
        if value is None:
            found[key] = None
        else:
            found[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def launch_defaults(settings: Mapping[str, str | None], *, is_configured: bool) -> dict[str, str]:
    """Return what Java is started with beside the settings; `is_configured` when somebody has set up its logs."""
    found = {"spark.ui.showConsoleProgress": "false"}
    if not is_configured and settings.get("spark.log.level") is None:
        options = settings.get("spark.driver.extraJavaOptions") or ""
        if "log4j2.configurationFile" not in options:
            quiet = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
            found["spark.driver.extraJavaOptions"] = f"{quiet} {options}".strip()
    return found


def session_defaults(master: Master, machine: int, settings: Mapping[str, str]) -> dict[str, str]:
    """Return what a session of this master is set to; `settings` are those already made."""
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    }
    cores = master.cores(machine, settings)
    if cores is not None:
        found["spark.sql.shuffle.partitions"] = str(cores)
    if master.is_local:
        # Nobody else is to reach it, and its name may lead anywhere.
        found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        found["spark.python.daemon.module"] = "ottla.spark.daemon"
        # The other way to write a checkpoint starts processes (readlink, chmod) for each file of it. Both look
        # whether the file is there and then rename, so neither is the safer one.
        found["spark.sql.streaming.checkpointFileManagerClass"] = _BY_FILE_SYSTEM
        # Over TCP the first words of each task wait 40 ms to be acknowledged. A socket's path must be short, and
        # that of Java's own directory for such things is.
        if "java.io.tmpdir" not in settings.get("spark.driver.extraJavaOptions", ""):
            found["spark.python.unix.domain.socket.enabled"] = "true"
    return found
