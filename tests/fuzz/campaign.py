"""A live fuzz from beginning to end: broker, topics, honest client, the watch over both, the report."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from ottla.wire.apis import BY_KEY
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.faults.by_hand import hand
from tests.fuzz.control import Control
from tests.fuzz.known import PARTITIONS, TOPICS, Known
from tests.fuzz.live import LiveFuzz
from tests.fuzz.sampler import NODE_ID
from tests.peers.connection import Connection
from tests.peers.ottla import OttlaServer
from tests.peers.process import resident_bytes_max
from tests.peers.server import free_ports

HONEST_TOPIC = "honest"
MIB = 1 << 20
GROWTH_BYTES_MAX = 150 * MIB
P99_MS_MAX = 50.0
LATE_MS_MAX = 1000.0
EVERY_PAIR_FROM = 100_000  # requests, after which each API has been asked at each version
WARM_UP_REQUESTS = 3000
TOPICS_EVERY = 20_000
_FAILURES = "ottla_handler_failures_total"
_SETTINGS = {
    "ottla.flush": "ack",  # as `ottla dev` has it
    # Few, so that each holds something.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.cleaner.backoff.ms": "1000",
    "socket.listen.backlog.size": "4096",
}


class Campaign:
    """One broker, one fuzz, one honest client."""

    def __init__(
        self, directory: Path, seed: int, *, only: frozenset[int] = frozenset(), well_formed: float = 0.6
    ) -> None:
        self.directory = directory
        self.seed = seed
        [self._metrics_port] = free_ports(1)
        metrics = {"ottla.metrics.listener": f"127.0.0.1:{self._metrics_port}"}
        self.server = OttlaServer(directory, _SETTINGS | metrics)
        self.known = Known()
        self._only = only
        self._well_formed = well_formed
        self.report: dict[str, object] = {"seed": seed}

    def __enter__(self) -> "Campaign":
        self.server.start()
        with hand(self.server.port) as client:
            assert client.create_topic(HONEST_TOPIC) is ErrorCode.NONE
        self._make_topics()
        ports = {"client": self.server.port, "controller": self.server.controller_port}
        self._control = Control(self.directory).__enter__()
        self.fuzz = LiveFuzz(
            self.seed,
            ports,
            self.known,
            only=self._only,
            well_formed_share=self._well_formed,
            late_within=self._control.late_within,
        )
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.fuzz.connections:
            each.close()
        self._control.__exit__()
        self.server.stop()

    def _make_topics(self) -> None:
        """Make the topics that are not there: broken bytes may ask for the deletion of one."""
        self.known.cluster_id = self.server.cluster_id
        with hand(self.server.port) as client:
            for name, settings in TOPICS.items():
                code = client.create_topic(name, PARTITIONS, **settings)
                assert code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), (name, code)
            # v9 of Metadata, which the hand asks with, has no ids yet.
            answer = client.connection.ask(MetadataRequest(topics=None), MetadataResponse, 12)
        self.known.topic_ids |= {topic.name: topic.topic_id for topic in answer.topics if topic.name in TOPICS}

    def run(self, requests: int) -> dict[str, object]:
        """Fuzz, with the honest client beside it, and return what was seen; AssertionError says what was wrong."""
        try:
            # Until every codec is compiled, and every coordinator has its log.
            self.fuzz.run(min(WARM_UP_REQUESTS, requests))
            start = resident_bytes_max(self.server.pid)
            honest = self._start_honest()
            began, cpu = time.monotonic(), self.server.cpu_seconds()
            highest, topics_made = start, 0
            try:
                while self.fuzz.done < requests:
                    self.fuzz.run(min(1000, requests - self.fuzz.done))
                    highest = resident_bytes_max(self.server.pid)  # what was there for a moment counts as well
                    assert self.server.process is not None and self.server.process.poll() is None, "the broker ended"
                    assert highest - start < GROWTH_BYTES_MAX, f"{(highest - start) >> 20} MB more memory"
                    if self.fuzz.done // TOPICS_EVERY > topics_made:
                        topics_made += 1
                        self._make_topics()
                        self._tell_progress(time.monotonic() - began, highest)
                took = time.monotonic() - began
            finally:
                self.report["honest"] = _figures_of(honest)
            self.report |= {
                "requests": self.fuzz.done,
                "seconds": round(took, 1),
                "broker_cpu_seconds": round(self.server.cpu_seconds() - cpu, 1),
                "start_mb": start >> 20,
                "highest_mb": highest >> 20,
                "slowest_s": round(self.fuzz.slowest_s, 2),
                "counts": dict(self.fuzz.counts),
                "by_api": self._by_api(),
                "closed": {str(key): count for key, count in self.fuzz.closed_by_api.most_common(12)},
            }
            self._judge()
        except (AssertionError, OSError) as error:
            kept = self.keep_frames()
            late = "\n".join(self.fuzz.late)
            raise AssertionError(
                f"{error}\nlate answers:\n{late}\n{self.broken()[:20]}\n{self.server.last_words(15)}\n"
                f"{self._odd_partitions()}\n"
                f"the last frames: python -m tests.fuzz.campaign --replay {kept}\n"
                f"the same seed: python -m tests.fuzz.campaign --seed {self.seed} --requests {requests}\n{self.report}"
            ) from error
        return self.report

    def _odd_partitions(self) -> list[str]:
        """Partitions that somebody else has a replica of, or nobody leads: who waits there may do so rightly."""
        try:
            with Connection(self.server.port) as connection:
                answer = connection.ask(MetadataRequest(topics=None), MetadataResponse, 12)
        except (OSError, AssertionError) as error:
            return [f"no metadata: {error!r}"]
        return [
            f"{topic.name} {part!r}"
            for topic in answer.topics
            for part in topic.partitions
            if part.replica_nodes != [NODE_ID] or part.error_code
        ][:20]

    def _tell_progress(self, took: float, highest: int) -> None:
        slowest = f"the slowest answer after {self.fuzz.slowest_s:.1f} s"
        print(f"{self.fuzz.done} requests in {took:.0f} s, at most {highest >> 20} MB, {slowest}", flush=True)

    def _start_honest(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.fuzz.honest"]
        command += [str(self.server.port), HONEST_TOPIC, str(self.server.pid), str(self.directory)]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )

    def _judge(self) -> None:
        """F1 to F4 held, or the run would not be over; here the rest."""
        with Connection(self.server.port) as connection:
            answer = connection.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
        assert [each.error_code for each in answer.results] == [0], "a log directory is offline"
        with hand(self.server.port) as client:
            for topic in client.metadata(HONEST_TOPIC, *TOPICS).topics:
                gone = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name != HONEST_TOPIC
                assert gone or not topic.error_code, f"{topic!r}"
                # What was given to other brokers, which are none, has no leader; what is ours has to have one.
                ours = [part for part in topic.partitions if part.replica_nodes == [NODE_ID]]
                assert not any(part.error_code for part in ours), f"{topic.name} has no leader: {topic!r}"
                assert ours or topic.name != HONEST_TOPIC
        unseen = self.fuzz.unseen_pairs()
        assert not unseen or self.fuzz.done < EVERY_PAIR_FROM, f"never sent: {unseen}"
        broken, failures = self.broken(), self.failures()
        assert not broken and not failures, f"{failures} handlers broke"
        honest = self.report["honest"]
        assert isinstance(honest, dict)
        assert honest.get("complaint_count") == 0, honest
        assert honest["held_up_p99_ms"] <= P99_MS_MAX, honest
        assert honest["held_up_max_ms"] <= LATE_MS_MAX, honest

    def _by_api(self) -> dict[str, int]:
        """How many requests each API of each listener got."""
        counts: Counter[str] = Counter()
        for (listener, key, _), count in sorted(self.fuzz.by_api.items()):
            counts[f"{listener} {BY_KEY[key].name}"] += count
        return dict(counts)

    def broken(self) -> list[str]:
        """What the broker said of handlers that raised, and of anything that nobody caught."""
        lines = self.server.output_path.read_text(errors="replace").splitlines()
        return [line for line in lines if " failed: " in line or "Traceback" in line or "Error: " in line]

    def failures(self) -> int:
        """How many requests have broken their handler, by the page with metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=10) as page:
            for line in page.read().decode().splitlines():
                if line.startswith(_FAILURES + " "):
                    return int(float(line.split()[1]))
        raise AssertionError(f"{_FAILURES} is not on the page")

    def keep_frames(self) -> Path:
        """Write down the last frames, to be sent again."""
        path = Path(tempfile.gettempdir()) / f"ottla-fuzz-{self.seed}.frames"
        with path.open("w") as out:
            for name, frame in self.fuzz.kept:
                out.write(f"{name} {frame.hex()}\n")
        return path


def _figures_of(honest: "subprocess.Popen[str]") -> dict[str, object]:
    """End the honest client, and return its report."""
    try:
        said, _ = honest.communicate("", timeout=60)
        figures: dict[str, object] = json.loads(said)
    except (subprocess.TimeoutExpired, ValueError) as error:
        honest.kill()
        honest.wait()
        return {"complaint_count": 1, "complaints": [f"the honest client has not reported: {error}"]}
    return figures


def replay(path: Path, directory: Path) -> None:
    """Send the frames of a failed run to a new broker, one by one, and say what became of each."""
    with Campaign(directory, 1) as campaign:
        ports = {"client": campaign.server.port, "controller": campaign.server.controller_port}
        connections: dict[str, Connection] = {}
        for line in path.read_text().splitlines():
            name, data = line.split()
            if name not in connections:
                connections[name] = Connection(ports[name.partition("-")[0]], seconds_max=0.5)
            try:
                connections[name].send_bytes(bytes.fromhex(data))
                connections[name].receive_frame()
            except Exception as error:  # noqa: BLE001
                print(name, data[:100], repr(error))
                connections.pop(name).close()
        print(campaign.server.last_words())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--api", type=int, action="append", default=[])
    parser.add_argument("--well-formed", type=float, default=0.6)
    parser.add_argument("--replay", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if arguments.replay:
            replay(arguments.replay, Path(directory))
            return
        print(f"seed {arguments.seed}", flush=True)
        only = frozenset(arguments.api)
        with Campaign(Path(directory), arguments.seed, only=only, well_formed=arguments.well_formed) as campaign:
            print(json.dumps(campaign.run(arguments.requests), indent=1))


if __name__ == "__main__":
    main()
