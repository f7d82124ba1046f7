"""The process that others are forked from has no thread, and has loaded what they need."""

import subprocess
import sys

CODE = """
import os, sys
import ottla.spark.daemon as daemon
print(len(os.listdir("/proc/self/task")), *(each for each in ("numpy", "pyarrow", "pandas") if each in sys.modules))
print(all(each.__name__ in sys.modules for each in daemon.LOADED))
"""


def test_nothing_is_loaded_that_starts_a_thread():
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["1", "True"], found.stderr
