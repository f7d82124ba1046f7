"""A broker alone is installed without the stack of the services, and starts without loading it."""

import subprocess
import sys

PROGRAM = """
import sys
import ottla.cli.dev, ottla.node.server, ottla.http.metrics_server
print([name for name in ("anyio", "granian", "starlette") if name in sys.modules])
"""

WITHOUT = """
import sys
sys.modules["granian"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "granian" else found(name, *rest)
from ottla.cli.main import main
sys.exit(main(["services"]))
"""


def test_a_node_does_not_load_the_stack() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.strip() == "[]"


def test_services_say_what_to_install() -> None:
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False, timeout=60
    )
    assert told.returncode == 69
    assert told.stderr.startswith("error: ") and "pip install 'ottla[services]'" in told.stderr
