"""Without PySpark there is one clear error, and not before somebody asks for Spark."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("statement", ["import ottla.spark; ottla.spark.session", "from ottla.spark import session"])
def test_one_clear_error(statement: str) -> None:
    program = f"""
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pyspark" else real(name, package)
try:
    {statement}
except ImportError as error:
    print(error)
"""
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout == (
        "ottla.spark needs PySpark, which is not installed\nhint: pip install 'ottla[spark]'\n"
    )


def test_the_names_load_when_they_are_used() -> None:
    program = (
        "import sys, ottla.spark; print([m for m in ('pyspark', 'py4j', 'pyarrow') if m in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout == "[]\n"
