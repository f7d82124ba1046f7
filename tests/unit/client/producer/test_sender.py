"""The whole producer against brokers in memory: what it asks, of whom, in which version and order."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.connections import ClientConnections
from ottla.client.errors import ClientError, Disconnected, Fenced, Malformed, MustAbort, Refused, TimedOut
from ottla.client.producer import Producer, parts
from ottla.client.producer.transaction_client import TransactionClient
from ottla.client.producer.transaction_offsets import OffsetsToCommit
from ottla.client.record import TopicPartition
from ottla.wire.batch import Batch as Header
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.end_txn import EndTxnResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorResponse
from ottla.wire.messages.init_producer_id import InitProducerIdResponse
from ottla.wire.messages.produce import ProduceResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from tests.client.loops import run_alone
from tests.unit.client.brokers import SILENCE, Brokers, broker, topic

ONE, TWO = "one:9092", "two:9092"
LATER: Any = 31_000
Topic = ProduceResponse.TopicProduceResponse
Partition = Topic.PartitionProduceResponse


class Cluster(Brokers):
    """Two brokers; the first leads, coordinates, and takes what it gets, unless a test says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata.brokers = [broker(1, "one"), broker(2, "two")]
        self.metadata.topics = [topic("t", (1, 0))]
        self.coordinator = 1
        self.version = 2
        self.epoch = 0
        self.codes: list[ErrorCode] = []
        self.headers: list[Header] = []
        self.end_codes: list[ErrorCode] = []
        self.add_codes: list[ErrorCode] = []
        self.handlers = {
            "InitProducerId": self.init,
            "Produce": self.produce,
            "FindCoordinator": self.find,
            "AddPartitionsToTxn": self.add_partitions,
            "AddOffsetsToTxn": lambda request: AddOffsetsToTxnResponse(),
            "TxnOffsetCommit": self.commit_offsets,
            "EndTxn": self.end,
        }

    def answer(self, address: str, name: str, request: Any) -> Any:
        found = super().answer(address, name, request)
        if name == "ApiVersions":
            feature = ApiVersionsResponse.FinalizedFeatureKey
            found.finalized_features = [
                feature(
                    name="transaction.version", max_version_level=self.version, min_version_level=self.version
                )
            ]
        return found

    def init(self, request: Any) -> Any:
        if request.producer_id != -1:
            self.epoch = request.producer_epoch + 1
        return InitProducerIdResponse(producer_id=77, producer_epoch=self.epoch)

    def produce(self, request: Any) -> Any:
        (data,) = request.topic_data
        (part,) = data.partition_data
        self.headers.append(Header.parse(bytes(part.records)))
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        answer = Partition(index=part.index, error_code=code, base_offset=-1 if code else 5)
        return ProduceResponse(
            responses=[Topic(name=data.name, topic_id=data.topic_id, partition_responses=[answer])]
        )

    def find(self, request: Any) -> Any:
        found = FindCoordinatorResponse.Coordinator(
            key=request.coordinator_keys[0],
            node_id=self.coordinator,
            host={1: "one", 2: "two"}[self.coordinator],
            port=9092,
        )
        return FindCoordinatorResponse(coordinators=[found])

    def add_partitions(self, request: Any) -> Any:
        code = self.add_codes.pop(0) if self.add_codes else ErrorCode.NONE
        result = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                    name=each.name,
                    results_by_partition=[
                        result(partition_index=number, partition_error_code=code)
                        for number in each.partitions
                    ],
                )
                for each in request.v3_and_below_topics
            ]
        )

    def commit_offsets(self, request: Any) -> Any:
        kind = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
        return TxnOffsetCommitResponse(
            topics=[
                kind(
                    name=each.name,
                    partitions=[
                        kind.TxnOffsetCommitResponsePartition(partition_index=part.partition_index)
                        for part in each.partitions
                    ],
                )
                for each in request.topics
            ]
        )

    def end(self, request: Any) -> Any:
        code = self.end_codes.pop(0) if self.end_codes else ErrorCode.NONE
        if code or self.version < 2:
            return EndTxnResponse(error_code=code)
        self.epoch = request.producer_epoch + 1
        return EndTxnResponse(producer_id=77, producer_epoch=self.epoch)

    def said(self) -> list[tuple[str, int]]:
        """What was asked, and in which version."""
        return [
            (name, version) for _, name, version, _ in self.asked if name not in ("ApiVersions", "Metadata")
        ]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(
        parts, "ClientConnections", lambda settings, _, entropy: ClientConnections(settings, made, entropy)
    )
    return made


def producer(**settings: Any) -> Producer:
    quick = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 4, "reconnect_backoff_ms": 1, "linger_ms": 0}
    return Producer([ONE, TWO], **quick | {"request_timeout_ms": 300} | settings)


def run(work: Callable[[], Any]) -> Any:
    return run_alone(work(), seconds_max=20)


def test_a_leader_that_an_answer_names_is_believed(cluster: Cluster) -> None:
    def moved(request: Any) -> Any:
        answer = cluster.produce(request)
        part = answer.responses[0].partition_responses[0]
        part.error_code, part.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        part.current_leader = Partition.LeaderIdAndEpoch(leader_id=3, leader_epoch=4)
        answer.node_endpoints = [ProduceResponse.NodeEndpoint(node_id=3, host="three", port=9092)]
        return answer

    cluster.handlers[ONE, "Produce"] = moved

    async def main() -> None:
        async with producer() as sending:
            assert (await sending.send_and_wait("t", b"x")).offset == 5
            asked = [
                (address, name) for address, name, _, _ in cluster.asked if name in ("Produce", "Metadata")
            ]
            first = asked.index((ONE, "Produce"))
            # Nobody had to be asked who leads now.
            assert asked[first:] == [(ONE, "Produce"), ("three:9092", "Produce")]
            assert sending.statistics().batches_retried == 1

    run(main)


def test_a_broker_that_asks_for_patience_gets_it(cluster: Cluster) -> None:
    times: list[float] = []

    def slow(request: Any) -> Any:
        times.append(time.monotonic())
        answer = cluster.produce(request)
        answer.throttle_time_ms = 120
        return answer

    cluster.handlers["Produce"] = slow

    async def main() -> None:
        async with producer() as sending:
            await sending.send_and_wait("t", b"1")
            await sending.send_and_wait("t", b"2")
            assert times[1] - times[0] >= 0.115
            assert sending.statistics().throttle_seconds == 0.24

    run(main)


@pytest.mark.parametrize("newest", [13, 12, 9])
def test_topics_by_id_where_the_broker_knows_how(cluster: Cluster, newest: int) -> None:
    cluster.limits = {ONE: {"Produce": newest}, TWO: {"Produce": newest}}

    async def main() -> None:
        async with producer() as sending:
            assert (await sending.send_and_wait("t", b"x")).offset == 5

    run(main)
    ((_, _, version, request),) = [each for each in cluster.asked if each[1] == "Produce"]
    data = request.topic_data[0]
    assert version == newest
    assert (data.name, data.topic_id) == (("", b"i" * 16) if newest == 13 else ("t", bytes(16)))


def test_each_connection_agrees_on_versions_anew(cluster: Cluster) -> None:
    async def main() -> None:
        async with producer() as sending:
            await sending.send_and_wait("t", b"x")
            cluster.limits = {ONE: {"Produce": 11}}
            cluster.hang_up()
            await asyncio.sleep(0.01)
            await sending.send_and_wait("t", b"x")

    run(main)
    assert [version for name, version in cluster.said() if name == "Produce"] == [13, 11]


def test_who_waits_for_room_hurries_only_as_long(cluster: Cluster) -> None:
    async def main() -> None:
        async with producer(buffer_memory=40_000, linger_ms=60_000, delivery_timeout_ms=70_000) as sending:
            await asyncio.gather(*(sending.send("t", b"x" * 9000) for _ in range(20)))
            await sending.flush()
            # What is sent now lingers again.
            delivery = await sending.send("t", b"x")
            await asyncio.sleep(0.05)
            assert not delivery.done()

    run(main)


def test_nobody_answers_without_acknowledgements(cluster: Cluster) -> None:
    def swallow(request: Any) -> Any:
        cluster.produce(request)
        return SILENCE

    cluster.handlers["Produce"] = swallow

    async def main() -> None:
        async with producer(acks=0) as sending:
            assert (await sending.send_and_wait("t", b"x")).offset == -1

    run(main)
    assert cluster.headers[0].producer_id == -1
    assert "InitProducerId" not in cluster.names()


def test_an_answer_that_leaves_a_partition_out(cluster: Cluster) -> None:
    cluster.handlers["Produce"] = lambda request: ProduceResponse()

    async def main() -> None:
        async with producer() as sending:
            with pytest.raises(Malformed, match="left partitions out"):
                await sending.send_and_wait("t", b"x")

    run(main)


def test_a_request_without_an_answer_is_sent_again(cluster: Cluster) -> None:
    heard: list[Any] = []

    def deaf(request: Any) -> Any:
        heard.append(request)
        return SILENCE if len(heard) == 1 else cluster.produce(request)

    cluster.handlers["Produce"] = deaf

    async def main() -> None:
        async with producer(request_timeout_ms=100) as sending:
            begun = time.monotonic()
            assert (await sending.send_and_wait("t", b"x")).offset == 5
            assert 0.09 < time.monotonic() - begun < 2

    run(main)
    assert len(heard) == 2


def test_connections_that_end_without_retries(cluster: Cluster) -> None:
    def silent(request: Any) -> Any:
        asyncio.get_running_loop().call_soon(cluster.hang_up)
        return SILENCE

    cluster.handlers["Produce"] = silent

    async def main() -> None:
        async with producer(retries=0) as sending:
            with pytest.raises(Disconnected):
                await sending.send_and_wait("t", b"x")
            del cluster.handlers["Produce"]
            cluster.handlers["Produce"] = cluster.produce
            await sending.send_and_wait("t", b"x")

    run(main)


def test_a_partition_without_a_leader_is_asked_for(cluster: Cluster) -> None:
    cluster.metadata.topics = [topic("t", (1, 0), (-1, 0))]

    async def main() -> None:
        async with producer() as sending:
            delivery = await sending.send("t", b"x", partition=1)
            await asyncio.sleep(0.05)
            assert not delivery.done()
            cluster.metadata.topics = [topic("t", (1, 0), (2, 1))]
            await delivery

    run(main)
    assert [address for address, name, _, _ in cluster.asked if name == "Produce"] == [TWO]


def test_a_producer_id_that_is_denied_for_now(cluster: Cluster) -> None:
    cluster.handlers["InitProducerId"] = lambda request: InitProducerIdResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )

    async def main() -> None:
        async with producer() as sending:
            with pytest.raises(Refused, match="CLUSTER_AUTHORIZATION_FAILED"):
                await sending.send_and_wait("t", b"x")
            cluster.handlers["InitProducerId"] = cluster.init
            await sending.send_and_wait("t", b"x")

    run(main)


def test_a_producer_id_that_is_to_be_had_later(cluster: Cluster) -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_CONTROLLER]

    def loading(request: Any) -> Any:
        return InitProducerIdResponse(error_code=codes.pop()) if codes else cluster.init(request)

    cluster.handlers["InitProducerId"] = loading

    async def main() -> None:
        async with producer() as sending:
            await sending.send_and_wait("t", b"x")

    run(main)
    assert cluster.headers[0].producer_id == 77


def test_lost_memory_means_another_epoch(cluster: Cluster) -> None:
    cluster.codes = [ErrorCode.NONE, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]

    async def main() -> None:
        async with producer() as sending:
            await sending.send_and_wait("t", b"1")
            await sending.send_and_wait("t", b"2")

    run(main)
    # The first of those was answered before the log start was known, so it was only sent again.
    assert [(each.producer_epoch, each.base_sequence) for each in cluster.headers] == [
        (0, 0),
        (0, 1),
        (0, 1),
        (1, 0),
    ]


def test_an_error_that_nothing_heals(cluster: Cluster) -> None:
    cluster.codes = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

    async def main() -> None:
        async with producer() as sending:
            with pytest.raises(Refused):
                await sending.send_and_wait("t", b"1")
            with pytest.raises(Refused, match="cannot go on"):
                await sending.send("t", b"2")

    run(main)


def test_a_code_of_a_later_release_is_an_error_like_any_other(cluster: Cluster) -> None:
    """What the broker of a later release says must not leave the producer waiting for what was said."""

    async def test() -> None:
        cluster.version = 1
        async with Producer(ONE, transactional_id="x", retry_backoff_ms=1, max_block_ms=2_000) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            cluster.codes = [LATER]
            delivery = await producer.send("t", b"a")
            await asyncio.wait_for(producer.flush(), 2)
            with pytest.raises(Refused, match="UNKNOWN_SERVER_ERROR"):
                delivery.result()
            await producer.abort_transaction()
            producer.begin_transaction()
            await producer.send_and_wait("t", b"b")
            cluster.end_codes = [LATER]
            with pytest.raises(Refused, match="UNKNOWN_SERVER_ERROR"):
                await producer.commit_transaction()
            with pytest.raises(Refused, match="the producer cannot go on"):
                await producer.abort_transaction()

    run_alone(test())


@pytest.mark.parametrize("patient", [True, False])
def test_offsets_that_cannot_be_sent_are_not_left_out_of_a_commit(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, patient: bool
) -> None:
    """What nobody foresaw breaks the transaction, whether the program has waited for it or not."""
    offsets = {TopicPartition("s", 0): 3}

    async def test() -> None:
        async with Producer(ONE, transactional_id="x", max_block_ms=2_000) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send_and_wait("t", b"a")
            with monkeypatch.context() as broken:
                broken.setattr(OffsetsToCommit, "request", lambda _: 1 / 0)
                waiting = asyncio.create_task(producer.send_offsets_to_transaction(offsets, "g"))
                if patient:
                    with pytest.raises(MustAbort, match="ZeroDivisionError"):
                        await waiting
                else:
                    await asyncio.sleep(0)
                    waiting.cancel()
                with pytest.raises(MustAbort, match="ZeroDivisionError"):
                    await producer.commit_transaction()
            await producer.abort_transaction()
            producer.begin_transaction()
            await producer.send_offsets_to_transaction(offsets, "g")
            await producer.commit_transaction()
        ends = [request.committed for _, name, _, request in cluster.asked if name == "EndTxn"]
        assert ends == [False, True]

    run_alone(test())


def test_an_end_that_nobody_foresaw_leaves_no_producer_in_between(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with Producer(ONE, transactional_id="x", max_block_ms=2_000) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send_and_wait("t", b"a")
            monkeypatch.setattr(TransactionClient, "_reset_identity", lambda *_: 1 / 0)
            with pytest.raises(ClientError, match="cannot go on: .*ZeroDivisionError"):
                await producer.commit_transaction()
            for call in (producer.commit_transaction, producer.abort_transaction):
                with pytest.raises(ClientError, match="cannot go on"):
                    await call()

    run_alone(test())


def test_an_answer_that_leaves_an_offset_out_is_asked_for_again(cluster: Cluster) -> None:
    async def test() -> None:
        full, answers = cluster.commit_offsets, [TxnOffsetCommitResponse(topics=[])]
        cluster.handlers["TxnOffsetCommit"] = lambda request: answers.pop() if answers else full(request)
        async with Producer(ONE, transactional_id="x", retry_backoff_ms=1, max_block_ms=2_000) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send_offsets_to_transaction({TopicPartition("s", 0): 3}, "g")
            await producer.commit_transaction()
        asked = [name for _, name, _, _ in cluster.asked]
        assert asked.count("TxnOffsetCommit") == 2
        assert asked.index("EndTxn") > len(asked) - 1 - asked[::-1].index("TxnOffsetCommit")

    run_alone(test())


def test_transactions_of_version_two(cluster: Cluster) -> None:
    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            await sending.init_transactions()
            for _ in range(2):
                async with sending.transaction():
                    await sending.send_and_wait("t", b"x")
                    await sending.send_offsets_to_transaction({TopicPartition("t", 0): 3}, "g")
            async with sending.transaction():
                pass

    run(main)
    assert cluster.said() == [
        ("FindCoordinator", 6),
        ("InitProducerId", 5),
        ("Produce", 13),
        ("FindCoordinator", 6),
        ("TxnOffsetCommit", 5),
        ("EndTxn", 5),
        ("Produce", 13),
        ("TxnOffsetCommit", 5),
        ("EndTxn", 5),
    ]
    assert [(each.producer_epoch, each.base_sequence) for each in cluster.headers] == [(0, 0), (1, 0)]
    assert all(each.is_transactional for each in cluster.headers)


def test_transactions_of_version_one(cluster: Cluster) -> None:
    cluster.version = 1

    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            await sending.init_transactions()
            for _ in range(2):
                async with sending.transaction():
                    await sending.send_and_wait("t", b"x")
            async with sending.transaction():
                await sending.send_offsets_to_transaction({TopicPartition("t", 0): 3}, "g")

    run(main)
    assert cluster.said() == [
        ("FindCoordinator", 6),
        ("InitProducerId", 5),
        ("AddPartitionsToTxn", 3),
        ("Produce", 11),
        ("EndTxn", 4),
        ("AddPartitionsToTxn", 3),
        ("Produce", 11),
        ("EndTxn", 4),
        ("AddOffsetsToTxn", 4),
        ("FindCoordinator", 6),
        ("TxnOffsetCommit", 4),
        ("EndTxn", 4),
    ]
    assert [(each.producer_epoch, each.base_sequence) for each in cluster.headers] == [(0, 0), (0, 1)]


def test_a_cluster_that_learns_version_two(cluster: Cluster) -> None:
    cluster.version = 1

    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            await sending.init_transactions()
            sending.begin_transaction()
            await sending.send_and_wait("t", b"x")
            # It is told when a connection is made, and that is after the end of this transaction.
            cluster.version = 2
            cluster.hang_up()
            await sending.commit_transaction()
            for _ in range(2):
                async with sending.transaction():
                    await sending.send_and_wait("t", b"x")

    run(main)
    said = cluster.said()
    # The transaction ends as it began, and another epoch separates the two versions.
    assert said[-4:] == [("EndTxn", 4), ("InitProducerId", 5), ("Produce", 13), ("EndTxn", 5)]
    assert [each.producer_epoch for each in cluster.headers] == [0, 0, 1]


def test_a_coordinator_that_moves(cluster: Cluster) -> None:
    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            await sending.init_transactions()
            sending.begin_transaction()
            await sending.send_and_wait("t", b"x")
            cluster.coordinator = 2
            cluster.end_codes = [ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS]
            await sending.commit_transaction()

    run(main)
    ends = [address for address, name, _, _ in cluster.asked if name == "EndTxn"]
    assert ends == [ONE, TWO, TWO]


@pytest.mark.parametrize("version", [1, 2])
def test_an_abort_that_heals(cluster: Cluster, version: int) -> None:
    cluster.version = version

    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            await sending.init_transactions()
            sending.begin_transaction()
            cluster.codes = [ErrorCode.INVALID_RECORD]
            delivery = await sending.send("t", b"x")
            with pytest.raises(Refused):
                await delivery
            with pytest.raises(MustAbort):
                await sending.commit_transaction()
            await sending.abort_transaction()
            async with sending.transaction():
                await sending.send("t", b"y")

    run(main)
    names = [name for name, _ in cluster.said()]
    # The first version asks for another epoch; in the second it comes with the end of the transaction.
    assert names.count("InitProducerId") == (2 if version == 1 else 1)
    assert [(each.producer_epoch, each.base_sequence) for each in cluster.headers] == [(0, 0), (1, 0)]


def test_partitions_that_may_not_be_written(cluster: Cluster) -> None:
    cluster.version = 1

    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            await sending.init_transactions()
            sending.begin_transaction()
            cluster.add_codes = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
            delivery = await sending.send("t", b"x")
            with pytest.raises(ClientError):
                await delivery
            with pytest.raises(MustAbort, match="TOPIC_AUTHORIZATION_FAILED"):
                await sending.send("t", b"x")
            # The coordinator has heard of nothing, so there is nothing to end.
            await sending.abort_transaction()
            assert "EndTxn" not in [name for name, _ in cluster.said()]
            async with sending.transaction():
                await sending.send("t", b"y")

    run(main)
    assert cluster.headers[-1].record_count == 1


def test_a_fenced_producer(cluster: Cluster) -> None:
    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            await sending.init_transactions()
            sending.begin_transaction()
            await sending.send_and_wait("t", b"x")
            cluster.end_codes = [ErrorCode.INVALID_PRODUCER_EPOCH]
            with pytest.raises(Fenced):
                await sending.commit_transaction()
            for call in (sending.commit_transaction, sending.abort_transaction, sending.init_transactions):
                with pytest.raises(Fenced, match="close this one"):
                    await call()
            with pytest.raises(Fenced):
                await sending.send("t", b"x")

    run(main)


def test_an_init_that_is_denied_may_be_tried_again(cluster: Cluster) -> None:
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    cluster.handlers["InitProducerId"] = lambda request: InitProducerIdResponse(error_code=denied)

    async def main() -> None:
        async with producer(transactional_id="x") as sending:
            with pytest.raises(Refused) as told:
                await sending.init_transactions()
            assert told.value.code is denied
            cluster.handlers["InitProducerId"] = cluster.init
            await sending.init_transactions()

    run(main)


def test_a_call_that_times_out_goes_on(cluster: Cluster) -> None:
    held: list[Any] = []

    def hold(request: Any) -> Any:
        held.append(request)
        return SILENCE if len(held) == 1 else cluster.end(request)

    cluster.handlers["EndTxn"] = hold

    async def main() -> None:
        async with producer(transactional_id="x", max_block_ms=100, request_timeout_ms=250) as sending:
            await sending.init_transactions()
            sending.begin_transaction()
            await sending.send("t", b"x")
            with pytest.raises(TimedOut, match="call commit_transaction again"):
                await sending.commit_transaction()
            with pytest.raises(TimedOut):
                await sending.commit_transaction()
            await asyncio.sleep(0.3)
            await sending.commit_transaction()
            sending.begin_transaction()
            await sending.abort_transaction()

    run(main)
    assert len(held) == 2


def test_the_sender_survives_what_it_did_not_expect(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with producer() as sending:
            await sending.send_and_wait("t", b"x")
            work, calls = sending._sender._run_once, list[int]()

            def fail_once() -> None:
                calls.append(1)
                if len(calls) == 1:
                    raise ZeroDivisionError
                work()

            monkeypatch.setattr(sending._sender, "_run_once", fail_once)
            await sending.send_and_wait("t", b"y")

    run(main)
    assert "the sender failed, and goes on" in caplog.text
