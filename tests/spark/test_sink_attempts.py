"""What Spark runs twice is written once, on executors that are processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.testing import Broker
from tests.compat.spark.standalone import Standalone
from tests.spark.sink_stage import Topics

ROOT = Path(__file__).resolve().parents[2]


class TwoHosts(Standalone):
    """A cluster whose workers seem to be on two machines: a task and its double are never on one."""

    def add_worker(self, number: int) -> None:
        work = self.directory / f"work-{number}"
        where = ["--host", f"127.0.0.{number + 1}", "--port", "0", "--webui-port", "0"]
        asked = ["--cores", str(self.cores), "--memory", self.memory, "--work-dir", str(work)]
        main = "org.apache.spark.deploy.worker.Worker"
        self.workers.append(self._run(f"worker-{number}", main, *where, *asked, self.master))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_tasks_that_are_tried_again_or_overtaken(
    on_spark: None, broker: Broker, topic_name: str, tmp_path: Path
) -> None:
    with TwoHosts(tmp_path / "cluster") as cluster:
        run(cluster, broker, topic_name, tmp_path)


def run(cluster: Standalone, broker: Broker, topic_name: str, folder: Path) -> None:
    topics = Topics(broker.bootstrap)
    topic = topics.make(topic_name, 3)
    # Executors find the tests by this, too.
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.spark.sink_attempts",
            cluster.master,
            broker.bootstrap,
            topic,
            str(folder),
        ],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    attempts = json.loads(ran.stdout.splitlines()[-1])
    assert attempts["failing"] > 4, "one was tried again"
    assert attempts["slow"] > 4, "one had a double"
    assert sorted(map(int, topics.read(topic))) == list(range(8000))
    assert len(topics.read(topic, committed=False)) == 8000, "what was given up was never there"
