"""kill -9 at any moment, under load: nothing acknowledged is lost, and every start succeeds."""

import random
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.faults.load import Load
from tests.faults.seeds import count, seeded
from tests.faults.sound import check_batches
from tests.peers.deadline import eventually
from tests.peers.ottla import OttlaServer

# Small segments, so that kills meet rolls; frequent checkpoints, so that they meet those too.
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "150",
    "replica.high.watermark.checkpoint.interval.ms": "150",
    "log.flush.start.offset.checkpoint.interval.ms": "150",
    "log.initial.task.delay.ms": "50",
}
TOPIC = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1024"}


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(count("OTTLA_KILLS", 10), id="short"),
        pytest.param(count("OTTLA_KILLS", 200), id="soak", marks=pytest.mark.long),
    ],
)
def test_kill_9_under_load_loses_nothing(kills: int, tmp_path: Path) -> None:
    chance = seeded(__file__, OTTLA_KILLS=kills)
    server = OttlaServer(tmp_path, SETTINGS).start()
    load = Load(server.bootstrap, random.Random(chance.random()), topic_settings=TOPIC)
    load.start()
    topics = Topics(server.bootstrap)
    try:
        for number in range(kills):
            topics.turn(number)
            if number and chance.random() < 0.2:
                # During the start, wherever that is by now.
                server.kill()
                server.start(wait=False)
                time.sleep(chance.uniform(0.05, 0.6))
            else:
                load.wait_for(chance.randrange(200))
                time.sleep(chance.uniform(0, 0.2))
            server.kill()
            server.settings["ottla.flush"] = chance.choice(("ack", "os"))
            server.start()
        load.stop()
        acknowledged = load.check()
        topics.check()
    finally:
        server.stop()
    batches = check_batches(server.log_dir)
    output = server.output_path.read_text()
    assert "Traceback" not in output, output[-4000:]
    with server:  # and once more, after a clean stop
        assert load.check() == acknowledged
    print(f"{kills} kills, {acknowledged} acknowledged records, {batches} batches")


class Topics:
    """Topics that are made and deleted meanwhile; what was acknowledged must hold."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
            }
        )
        self._there: set[str] = set()
        self._gone: set[str] = set()

    def turn(self, number: int) -> None:
        """Make a topic, and delete an older one."""
        name = f"turn-{number}"
        if self._acknowledged(self._admin.create_topics([NewTopic(name, 2, 1)])[name]):
            self._there.add(name)
        if number % 3 == 2 and self._there:
            old = sorted(self._there)[0]
            self._there.discard(old)
            if self._acknowledged(self._admin.delete_topics([old])[old]):
                self._gone.add(old)

    @staticmethod
    def _acknowledged(future: "object") -> bool:
        try:
            future.result(5)  # type: ignore[attr-defined]
        except (KafkaException, TimeoutError):
            return False
        return True

    def check(self) -> None:
        def as_told() -> bool:
            known = self._admin.list_topics(timeout=10).topics.keys()
            return self._there <= known and not self._gone & known

        eventually(as_told)
