"""Apache Kafka's command line tools in one Java machine, for tests that use many.

    with Toolbox() as box:
        box.tool("MetadataQuorumCommand", "--bootstrap-server", bootstrap, "describe", "--status")

T1  A tool is run as its `main` with these arguments, and whatever it prints is returned, errors too.
T2  Tools run one after another; what ends the process elsewhere ends the tool here.
"""

import base64
import select
import subprocess
from pathlib import Path
from typing import Self

from tests.peers import jars
from tests.peers.kafka import SHORT_LIVED, TOOL_SECONDS_MAX, ToolFailed

SOURCE = Path(__file__).with_name("Tools.java")


class Toolbox:
    """Tools by their class names (`org.apache.kafka.tools.` may be left out)."""

    def __init__(self) -> None:
        command = [jars.java(), *SHORT_LIVED, "-cp", jars.classpath(), str(SOURCE)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def tool(
        self, name: str, *arguments: str, check: bool = True, seconds_max: float = TOOL_SECONDS_MAX
    ) -> str:
        """Run one, and return what it printed; ToolFailed when it ends with an error, unless told not to check."""
        full = name if name.startswith(("kafka.", "org.")) else f"org.apache.kafka.tools.{name}"
        words = ["=" + base64.b64encode(each.encode()).decode() for each in (full, *arguments)]
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(" ".join(words).encode() + b"\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], seconds_max)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self.close()
            raise ToolFailed(f"{full} {' '.join(arguments)} did not end in {seconds_max} s")
        code, _, text = line.decode().rstrip("\n").partition(" ")
        printed = base64.b64decode(text).decode()
        if check and code != "0":
            raise ToolFailed(f"{full} {' '.join(arguments)} ended with {code}:\n{printed}")
        return printed

    def close(self) -> None:
        """End the machine."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
