"""Every example of the guide runs, in the order of the page, on a broker of its own."""

import re
import subprocess
import sys

import pytest

from ottla.testing import Broker
from tests.peers.jars import CHECKOUT

PAGES = ["client.md"]
SECONDS_MAX = 60


@pytest.mark.parametrize("page", PAGES)
def test_every_example_runs(page):
    text = (CHECKOUT / "docs" / "guide" / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) > 5
    with Broker() as broker:
        for number, example in enumerate(examples, 1):
            code = example.replace("localhost:9092", broker.bootstrap)
            done = subprocess.run(
                [sys.executable, "-W", "error::ResourceWarning", "-c", code],
                check=False,
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
            )
            assert done.returncode == 0, f"example {number}:\n{example}\n{done.stdout}{done.stderr}"
            assert not done.stderr, f"example {number} said: {done.stderr}"
