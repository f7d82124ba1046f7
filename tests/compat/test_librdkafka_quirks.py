"""What librdkafka does to itself when an answer is lost: the same on Apache Kafka as on Ottla.

Both were seen in long histories under kills (`tests/cluster/test_history.py`), as a lost write and as a skip. Neither
is of the broker's making: each is played here, step by step, on either.

A write that is lost. A message was sent and written, its answer is lost, and it waits to be sent again. To abort
the transaction drops it, and librdkafka gives its sequence number to the next message (`rd_kafka_toppar_purge_queues`
raises `epoch_base_msgid`). In the same epoch a batch with a number that was written is a duplicate, whatever
became of its transaction (KIP-98), so the new message is acknowledged with the old offset, and is nowhere. With
transactions v2 the epoch rises with each transaction, but librdkafka speaks v1.

A skip. An answer about the end of a partition that has become outdated, by a new assignment or a change of
leaders, starts a timer that asks again half a second later (`rd_kafka_toppar_handle_Offset`). The answer to a
newer question does not stop it. So the consumer reads on, and is then put at the end for a second time, past
whatever was written since its last fetch.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.absence import need_kafka
from tests.compat.chosen import SERVERS
from tests.compat.cutting_proxy import API_VERSIONS, FETCH, LIST_OFFSETS, PRODUCE, CuttingProxy
from tests.peers.deadline import eventually
from tests.peers.server import HOST, Server, free_ports

SECONDS_MAX = 20.0
QUERY_TIMER_SECONDS = 0.5  # librdkafka's, between two questions for an offset
QUICK: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
BOTH = [
    pytest.param(name, marks=[pytest.mark.long] * (name == "kafka")) for name in sorted(SERVERS, reverse=True)
]


class Stage:
    """A broker, a proxy before it that its clients are sent to, and a topic of one partition."""

    def __init__(self, server: Server, proxy: CuttingProxy) -> None:
        self.server, self.proxy, self.topic = server, proxy, "quirks"
        self.proxied = {"bootstrap.servers": f"{HOST}:{proxy.port}", **QUICK}

    def messages(self, isolation: str) -> list[tuple[int | None, bytes | None]]:
        """All there is to read, with offsets, up to a last record that is written for it."""
        settings = self.proxied | {"group.id": "all", "isolation.level": isolation}
        last = Producer(self.proxied)
        last.produce(self.topic, b"last", partition=0)
        last.flush(SECONDS_MAX)
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
        found = [_poll(consumer)]
        while found[-1].value() != b"last":
            found.append(_poll(consumer))
        consumer.close()
        return [(each.offset(), each.value()) for each in found[:-1]]


def _poll(consumer: Consumer) -> Message:
    message = consumer.poll(SECONDS_MAX)
    assert message is not None, "nothing came"
    assert message.error() is None, message.error()
    return message


@pytest.fixture(params=BOTH)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    if request.param == "kafka":
        need_kafka()
    [port] = free_ports(1)
    advertised = {
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "transaction.state.log.num.partitions": "1",
    }
    with SERVERS[request.param](tmp_path, advertised) as server, CuttingProxy(port, server.port) as proxy:
        made = Stage(server, proxy)
        admin = AdminClient(made.proxied)
        admin.create_topics([NewTopic(made.topic, 1, 1)])[made.topic].result(SECONDS_MAX)
        yield made


def test_a_message_that_an_abort_turned_into_a_duplicate(stage: Stage) -> None:
    proxy, told = stage.proxy, {}

    def send(value: bytes) -> None:
        def delivered(error: Any, message: Message) -> None:
            told[value] = str(error) if error is not None else message.offset()

        producer.produce(stage.topic, value, partition=0, on_delivery=delivered)

    slow = {
        "transactional.id": "writer",
        "linger.ms": 0,
        "retry.backoff.ms": 2_000,
        "retry.backoff.max.ms": 2_000,
    }
    producer = Producer(stage.proxied | slow)
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    send(b"first")
    producer.commit_transaction(SECONDS_MAX)
    producer.begin_transaction()
    proxy.lose(PRODUCE)
    connections = proxy.requests[API_VERSIONS]
    send(b"aborted")
    eventually(lambda: proxy.lost == 1, SECONDS_MAX)
    # It has noticed that its connection is gone, and keeps the message for two seconds before it sends it again.
    eventually(lambda: proxy.requests[API_VERSIONS] > connections, SECONDS_MAX)
    producer.abort_transaction(SECONDS_MAX)
    producer.begin_transaction()
    send(b"committed")
    producer.commit_transaction(SECONDS_MAX)
    written = stage.messages("read_uncommitted")
    print(stage.server.name, told, written)
    assert [value for _, value in written] == [b"first", b"aborted"]
    assert told[b"committed"] == written[1][0], "it was acknowledged with the offset of the one before"
    assert [value for _, value in stage.messages("read_committed")] == [b"first"]


def test_a_consumer_that_is_put_at_the_end_twice(stage: Stage) -> None:
    proxy, topic = stage.proxy, stage.topic
    producer = Producer(stage.proxied)

    def write(*values: bytes) -> None:
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(SECONDS_MAX) == 0

    write(b"before")
    consumer = Consumer(stage.proxied | {"group.id": "reader", "client.id": "reader"})
    proxy.hold(LIST_OFFSETS)
    for count in (1, 2):
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        eventually(lambda count=count: proxy.requests[LIST_OFFSETS] == count, SECONDS_MAX)
    fetches = proxy.requests[FETCH]
    proxy.release()
    eventually(lambda: proxy.requests[FETCH] > fetches, SECONDS_MAX)
    write(b"seen")
    seen = _poll(consumer)
    proxy.cut("reader")
    write(b"skipped", b"skipped")
    time.sleep(2 * QUERY_TIMER_SECONDS)  # its own timer, which nothing outside tells of
    proxy.mend()
    eventually(lambda: proxy.requests[LIST_OFFSETS] == 3, SECONDS_MAX)
    fetches = proxy.requests[FETCH]
    eventually(lambda: proxy.requests[FETCH] > fetches, SECONDS_MAX)
    write(b"after")
    after = _poll(consumer)
    consumer.close()
    assert (seen.value(), seen.offset()) == (b"seen", 1)
    assert (after.value(), after.offset()) == (b"after", 4), "two records were passed over"
