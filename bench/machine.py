"""The facts of the machine and of the programs that a result depends on; neither names nor paths."""

import os
import platform
import re
import subprocess
from pathlib import Path

import confluent_kafka

import ottla
from tests.peers import jars


def facts() -> dict[str, str]:
    """What to print beside a result."""
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return {
        "cores": str(os.cpu_count()),
        "processor": model[1].strip() if model else "unknown",
        "memory": f"{int(memory[1]) / 1024**2:.0f} GiB" if memory else "unknown",
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "java": _java(),
        "ottla": ottla.__version__,
        "kafka": jars.VERSION,
        "librdkafka": confluent_kafka.libversion()[0],
    }


def _java() -> str:
    try:
        done = subprocess.run([jars.java(), "-version"], capture_output=True, text=True, check=False)
    except jars.KafkaAbsent:
        return "absent"
    version = re.search(r'version "(.+?)"', done.stderr)
    return version[1] if version else "unknown"
