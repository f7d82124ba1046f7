"""Apache Kafka's jars: fetched once from Maven Central, run with the machine's own Java.

The tests and the benchmarks meet Kafka only through here, and work without it: where Java is absent, or
the jars are neither there nor to be had, `classpath()` raises `KafkaAbsent` with a sentence fit for a skip line.
"""

import fcntl
import functools
import hashlib
import shutil
import subprocess
from pathlib import Path

VERSION = "4.3.1"
CHECKOUT = Path(__file__).resolve().parents[2]
HOME = CHECKOUT / ".cache" / f"kafka-{VERSION}"
POM = Path(__file__).with_name("pom.xml")
FETCH_SECONDS_MAX = 600


class KafkaAbsent(Exception):
    """Apache Kafka cannot be run on this machine; the text says why."""


@functools.cache
def java() -> str:
    """The path of the Java launcher."""
    found = shutil.which("java")
    if found is None:
        raise KafkaAbsent("Java is not installed")
    return found


def classpath() -> str:
    """The class path of Apache Kafka with its tools, fetched by Maven on first use."""
    return f"{folder(POM, HOME)}/*"


def folder(pom: Path, home: Path) -> Path:
    """Where the jars that a POM names lie under `home`, fetched by Maven on first use."""
    found = _find(pom, home)
    if isinstance(found, KafkaAbsent):
        raise found
    return found


@functools.cache
def _find(pom: Path, home: Path) -> Path | KafkaAbsent:
    """The folder, or why there is none: a fetch that failed is not tried again for every test."""
    libs, stamp = home / "libs", home / "fetched"
    wanted = hashlib.sha256(pom.read_bytes()).hexdigest()
    try:
        java()
        home.mkdir(parents=True, exist_ok=True)
        # Two test runs of one checkout may both be the first.
        with (home / "fetching").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamp.exists() or stamp.read_text() != wanted:
                _fetch(pom, libs)
                stamp.write_text(wanted)
    except KafkaAbsent as absent:
        return absent
    return libs


def _fetch(pom: Path, libs: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaAbsent("Maven is not installed, and the jars are not there yet")
    shutil.rmtree(libs, ignore_errors=True)
    libs.mkdir(parents=True)
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={libs}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise KafkaAbsent("Maven did not deliver the jars in time") from None
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line] or ["no reason given"]
        raise KafkaAbsent(f"Maven could not fetch the jars: {lines[0]}")
