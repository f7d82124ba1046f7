"""The test suite of franz-go, a client for Go, run against the server: groups, transactions, patterns, hostile timings.

Apache Kafka 4.3.1 passes 149 of its tests, and skips three: two for want of SASL, one that needs an old broker.
"""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.compat.absence import need_go
from tests.peers.jars import CHECKOUT
from tests.peers.server import Server

pytestmark = [pytest.mark.long, pytest.mark.timeout(2_000)]

MODULE = "github.com/twmb/franz-go@v1.22.2"
PLACE = CHECKOUT / ".cache" / "franz-go"
# SCRAM needs a listener of its own, the other one an old broker.
ABSENT = re.compile(r"SCRAM|TooOld")


@pytest.fixture(scope="session")
def suite() -> Path:
    """The suite, compiled; the first time takes about a minute."""
    need_go()
    binary = PLACE / "kgo.test"
    if not binary.exists():
        told = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        )
        shutil.rmtree(PLACE, ignore_errors=True)
        shutil.copytree(json.loads(told.stdout)["Dir"], PLACE)
        subprocess.run(["chmod", "-R", "u+w", str(PLACE)], check=True)
        subprocess.run(
            ["go", "test", "-c", "-o", str(binary), "./pkg/kgo/"], check=True, cwd=PLACE, timeout=600
        )
    return binary


def test_the_suite_of_franz_go(suite: Path, server: Server) -> None:
    surroundings = os.environ | {
        "KGO_SEEDS": server.bootstrap,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": "20000",
        "KGO_TEST_STABLE_FETCH": "true",
    }
    done = subprocess.run(
        [str(suite), "-test.v", "-test.timeout", "900s"],
        check=False,
        cwd=PLACE / "pkg" / "kgo",
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=960,
    )
    results = re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", done.stdout, re.MULTILINE)
    assert [name for result, name in results if result == "FAIL"] == [], done.stdout[-4000:]
    skipped = [name for result, name in results if result == "SKIP"]
    assert [name for name in skipped if not ABSENT.search(name)] == []
    counts = Counter(result for result, _ in results)
    assert counts["PASS"] >= 149, counts
