"""What groups and transactions cost: commits, transactions, a group that settles, and members that only live.

    python -m bench.scenarios.coordination [kafka]

tries all four in tiny sizes, and its figures mean nothing.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bench import raw
from bench.raw import Load
from bench.scenarios.connections import SPARE_FILES, _allow_files
from bench.scenarios.members import ClassicMember, ConsumerMember, Crowd, Member
from bench.scenarios.warm import warm
from bench.stage import QUICK, Stage
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tests.peers.connection import Connection, request_frame
from tests.peers.deadline import eventually
from tests.peers.server import Server

COMMIT_VERSION = 9
WINDOW = 64
COMMITS_AT_ONCE = 500
# Heartbeats while a group settles come often, so that the broker is measured and not the clients' patience.
SETTLING_SECONDS = 0.2
TURNS = 9
GROUP_SIZE = 50


def commits(stage: Stage) -> dict[str, float]:
    """Offset commits of one partition, many unanswered at a time."""
    count = stage.sizes.requests
    with stage.server() as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "committed")
        _raw_commits(server, stage.sizes.warm_requests)
        by_hand = _raw_commits(server, count)
        by_client = _client_commits(server, count // 2)
    return {
        "commits.per_s": count // 2 / by_client.seconds,
        "commits.cpu_us": by_client.cpu_seconds / (count // 2) * 1e6,
        "commits.raw_per_s": count / by_hand.seconds,
        "commits.raw_cpu_us": by_hand.cpu_seconds / count * 1e6,
    }


def _raw_commits(server: Server, count: int) -> Load:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    place = topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    request = OffsetCommitRequest(
        group_id="by-hand", member_id="", topics=[topic(name="committed", partitions=[place])]
    )
    frame = request_frame(request, COMMIT_VERSION, 1)
    with Connection(server.port, seconds_max=120) as line:
        eventually(lambda: _committed(line, request), 30)
        line.send_bytes(frame)
        answer_size = len(line.receive_frame()) + 4
        cpu, began = server.cpu_seconds(), time.perf_counter()
        raw._pump([line], frame, answer_size, count, WINDOW)
        load = Load(time.perf_counter() - began, server.cpu_seconds() - cpu)
        assert _committed(line, request)
        return load


def _committed(line: Connection, request: OffsetCommitRequest) -> bool:
    line.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["by-hand"]), FindCoordinatorResponse, 4)
    answer = line.ask(request, OffsetCommitResponse, COMMIT_VERSION)
    return bool(answer.topics[0].partitions[0].error_code == ErrorCode.NONE)


def _client_commits(server: Server, count: int) -> Load:
    answered = 0

    def on_commit(error: KafkaError | None, _: list[TopicPartition]) -> None:
        nonlocal answered
        assert error is None, error
        answered += 1

    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "by-client",
            "enable.auto.commit": False,
            "on_commit": on_commit,
        }
    )
    try:
        # Nothing is read: the one partition stands still beyond its end.
        consumer.assign([TopicPartition("committed", 0, 0)])
        consumer.commit(offsets=[TopicPartition("committed", 0, 1)], asynchronous=False)
        answered, sent = 0, 0
        cpu, began = server.cpu_seconds(), time.perf_counter()
        while answered < count:
            while sent < count and sent - answered < COMMITS_AT_ONCE:
                consumer.commit(offsets=[TopicPartition("committed", 0, sent)], asynchronous=True)
                sent += 1
            consumer.poll(0.005)
        return Load(time.perf_counter() - began, server.cpu_seconds() - cpu)
    finally:
        consumer.close()


def transactions(stage: Stage) -> dict[str, float]:
    """Transactions of one record in one partition, one after the other."""
    count = stage.sizes.transactions
    with stage.server() as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "transactions")
        producer = Producer(
            {"bootstrap.servers": server.bootstrap, "transactional.id": "bench", "linger.ms": 0}
        )
        producer.init_transactions(60)
        _transactions(producer, count // 3)
        cpu, began = server.cpu_seconds(), time.perf_counter()
        _transactions(producer, count)
        load = Load(time.perf_counter() - began, server.cpu_seconds() - cpu)
    return {
        "transactions.per_s": count / load.seconds,
        "transactions.cpu_us": load.cpu_seconds / count * 1e6,
    }


def _transactions(producer: Producer, count: int) -> None:
    content = bytes(100)
    for _ in range(count):
        producer.begin_transaction()
        producer.produce("transactions", content, partition=0)
        producer.commit_transaction(60)


def settling(stage: Stage) -> dict[str, float]:
    """From the first join of a whole group to the moment when all its members have their partitions."""
    count = stage.sizes.connections // 25
    with stage.server() as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "settling", partitions=count)
        _settled(server, ClassicMember, "classic-warm", count // 4)
        _settled(server, ConsumerMember, "consumer-warm", count // 4)
        classic = [_settled(server, ClassicMember, f"classic-{n}", count) for n in range(TURNS)]
        consumer = [_settled(server, ConsumerMember, f"consumer-{n}", count) for n in range(TURNS)]
    return {
        "settling.classic_s": statistics.median(each.seconds for each in classic),
        "settling.classic_cpu_s": statistics.median(each.cpu_seconds for each in classic),
        "settling.consumer_s": statistics.median(each.seconds for each in consumer),
        "settling.consumer_cpu_s": statistics.median(each.cpu_seconds for each in consumer),
    }


def _settled(server: Server, kind: Callable[[int, str, str], Member], group: str, count: int) -> Load:
    members = [kind(server.port, group, "settling") for _ in range(count)]
    crowd = Crowd(members, SETTLING_SECONDS)
    try:
        cpu, began = server.cpu_seconds(), time.perf_counter()
        crowd.start()
        crowd.run_until(lambda: _at_rest(members))
        return Load(time.perf_counter() - began, server.cpu_seconds() - cpu)
    finally:
        crowd.close()


def _at_rest(members: list[Member]) -> bool:
    """Whether all members of one group are in one epoch, and each has something to do."""
    epoch = members[0].epoch
    return epoch > 0 and all(each.steady and each.epoch == epoch for each in members)


def idle_members(stage: Stage) -> dict[str, float]:
    """What the heartbeats of many members cost, in groups of fifty, at the interval that clients have by default."""
    count, seconds = stage.sizes.connections // 5, stage.sizes.idle_seconds
    figures = {}
    _allow_files(count + SPARE_FILES)
    with stage.server() as server:
        warm(server, stage.sizes)
        raw.make_topic(server, "idle", partitions=GROUP_SIZE)
        kinds: dict[str, type[Member]] = {"classic": ClassicMember, "consumer": ConsumerMember}
        for name, kind in kinds.items():
            figures[f"idle_members.{name}_percent"] = _idle_percent(server, kind, name, count, seconds)
    return figures


def _idle_percent(server: Server, kind: type[Member], name: str, count: int, seconds: int) -> float:
    sizes = [min(GROUP_SIZE, count - start) for start in range(0, count, GROUP_SIZE)]
    groups = [
        [kind(server.port, f"idle-{name}-{n}", "idle") for _ in range(size)] for n, size in enumerate(sizes)
    ]
    crowd = Crowd([each for members in groups for each in members], SETTLING_SECONDS * 5)
    try:
        crowd.start()
        crowd.run_until(lambda: all(map(_at_rest, groups)))
        crowd.spread(kind.interval_seconds)
        crowd.run(kind.interval_seconds)
        cpu, began = server.cpu_seconds(), time.perf_counter()
        crowd.run(seconds)
        busy = (server.cpu_seconds() - cpu) / (time.perf_counter() - began)
        assert all(map(_at_rest, groups)), "a group did not stay as it was"
        return busy * 100
    finally:
        crowd.close()


def main() -> None:
    product = sys.argv[1] if len(sys.argv) > 1 else "ottla"
    with tempfile.TemporaryDirectory() as directory:
        for scenario in (commits, transactions, settling, idle_members):
            began = time.monotonic()
            figures = scenario(Stage(product, QUICK, Path(directory)))
            told = ", ".join(f"{name} {figure:.4g}" for name, figure in figures.items())
            print(f"{product} ({time.monotonic() - began:.0f} s): {told}", flush=True)


if __name__ == "__main__":
    main()
