"""franz-go's suite on three nodes, with three replicas of every topic."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.chosen import CHOSEN
from tests.compat.test_franz_go import ABSENT, PLACE, suite
from tests.peers.cluster import Cluster, running

__all__ = ["suite"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(3_000)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("franz"), product=CHOSEN) as made:
        yield made


def test_the_suite_of_franz_go_on_three_nodes(suite: Path, cluster: Cluster) -> None:
    surroundings = os.environ | {
        "KGO_SEEDS": cluster.bootstrap,
        "KGO_TEST_RF": "3",
        "KGO_TEST_RECORDS": "20000",
        "KGO_TEST_STABLE_FETCH": "true",
    }
    done = subprocess.run(
        [str(suite), "-test.v", "-test.timeout", "2000s"],
        check=False,
        cwd=PLACE / "pkg" / "kgo",
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=2100,
    )
    results = re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", done.stdout, re.MULTILINE)
    assert [name for result, name in results if result == "FAIL"] == [], done.stdout[-4000:]
    skipped = [name for result, name in results if result == "SKIP"]
    assert [name for name in skipped if not ABSENT.search(name)] == []
    counts = Counter(result for result, _ in results)
    assert counts["PASS"] >= 149, counts
