"""Apache Kafka as a peer: one KRaft node, and its command line tools."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.peers import jars
from tests.peers.server import Server

LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.xml')}"
# A tool lives a second or two: the optimising compiler and a parallel collector only get in its way.
SHORT_LIVED = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", LOGGING]
TOOL_SECONDS_MAX = 60.0


class ToolFailed(Exception):
    """A tool of Apache Kafka ended with an error; the text is what it printed."""


def tool(
    name: str,
    *arguments: str,
    stdin: str | None = None,
    check: bool = True,
    seconds_max: float = TOOL_SECONDS_MAX,
) -> str:
    """Run a tool by its class name (`org.apache.kafka.tools.` may be left out) and return what it printed."""
    full = name if name.startswith(("kafka.", "org.")) else f"org.apache.kafka.tools.{name}"
    command = [jars.java(), *SHORT_LIVED, "-cp", jars.classpath(), full, *arguments]
    done = subprocess.run(
        command, check=False, input=stdin, capture_output=True, text=True, timeout=seconds_max
    )
    printed = done.stdout + done.stderr
    if check and done.returncode != 0:
        raise ToolFailed(f"{full} {' '.join(arguments)} ended with {done.returncode}:\n{printed}")
    return printed


class KafkaServer(Server):
    """Apache Kafka in KRaft mode, broker and controller in one."""

    name = "kafka"

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        like: Server | None = None,
        heap: str = "512m",
    ) -> None:
        super().__init__(directory, settings, like=like)
        self.heap = heap

    def format_command(self) -> list[str]:
        arguments = ["format", "-t", self.cluster_id, "-c", str(self.properties_path), "--standalone"]
        return [jars.java(), *SHORT_LIVED, "-cp", jars.classpath(), "kafka.tools.StorageTool", *arguments]

    def start_command(self) -> list[str]:
        # The collector and its limits are those of kafka-run-class.sh.
        collector = [
            "-server",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
            "-XX:InitiatingHeapOccupancyPercent=35",
        ]
        collector += ["-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"]
        memory = [f"-Xmx{self.heap}", f"-Xms{self.heap}"]
        java = [jars.java(), *memory, *collector, LOGGING, "-cp", jars.classpath()]
        return [*java, "kafka.Kafka", str(self.properties_path)]
