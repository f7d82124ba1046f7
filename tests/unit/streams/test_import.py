"""What is said of a topology needs no Spark; what runs it does."""

import subprocess
import sys


def test_a_topology_is_said_without_spark() -> None:
    code = """
import sys
from ottla.streams import App
app = App("app")
app.stream("a").filter(lambda v: v != "x").group_by_key().count().to("b")
app.plan()
assert not any(name.partition(".")[0] in ("pyspark", "pyarrow", "pandas") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_spark_there_is_one_clear_error() -> None:
    code = """
import sys
from importlib import machinery
find = machinery.PathFinder.find_spec
machinery.PathFinder.find_spec = lambda name, *more: None if name.startswith("pyspark") else find(name, *more)
import ottla.streams
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = (
        "ImportError: ottla.streams needs PySpark, which is not installed\nhint: pip install 'ottla[spark]'\n"
    )
    assert done.stderr.endswith(said)
