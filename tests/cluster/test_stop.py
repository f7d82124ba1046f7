"""All nodes of a cluster are told to stop at once: none waits long for a controller that is gone."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cluster.conftest import create_topic
from tests.cluster.test_replication import read
from tests.cluster.test_tools import fill
from tests.peers.cluster import running

SECONDS_MAX = 3.0


def test_a_cluster_stops_and_starts_as_a_whole(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        topic = create_topic(cluster)
        fill(cluster, topic, 30)
        began = time.monotonic()
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda node: node.stop(), cluster.nodes.values()))
        assert time.monotonic() - began < SECONDS_MAX
        cluster.start()
        cluster.wait_in_sync(topic, 3)
        assert len(read(cluster, topic, 30)) == 30
