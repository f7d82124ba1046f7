"""Offsets by name and by time, seen through each client, and reading from where they point."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPlace
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPlace
from kafka.admin import KafkaAdminClient
from kafka.admin import OffsetSpec as PythonSpec

from tests.compat.absence import need
from tests.compat.chosen import MakeTopic
from tests.compat.clients import CODECS, Confluent, Kcat, Sample

START_MS = int(time.time() * 1000) - 3_600_000
# Ten records, a second apart but for the last, which is older than its neighbours.
TIMES_MS = [START_MS + 1000 * n for n in range(9)] + [START_MS + 4500]
END = len(TIMES_MS)
# (a moment, the offset that a look-up must give: the first record not older than it)
LOOK_UPS = [(START_MS - 1, 0), (START_MS, 0), (START_MS + 1, 1), (START_MS + 4000, 4), (START_MS + 8000, 8)]


def fill(bootstrap: str, topic: str, codec: str = "none", batched: bool = True) -> None:
    samples = [Sample(key=b"k", value=b"%d" % n, timestamp_ms=moment) for n, moment in enumerate(TIMES_MS)]
    for group in [samples] if batched else [[sample] for sample in samples]:
        Confluent().produce(bootstrap, topic, group, codec=codec)


@pytest.fixture(params=[*CODECS, "each alone"])
def filled(request: pytest.FixtureRequest, bootstrap: str, topic: str) -> str:
    """A topic with the ten records in one batch of each codec, or each in a batch of its own."""
    batched = request.param in CODECS
    fill(bootstrap, topic, request.param if batched else "none", batched)
    return topic


def test_list_offsets_with_confluent_kafka(filled: str, admin: AdminClient) -> None:
    def offset(spec: OffsetSpec) -> tuple[int, int]:
        place = TopicPartition(filled, 0)
        found = admin.list_offsets({place: spec})[place].result(20)
        return found.offset, found.timestamp

    assert offset(OffsetSpec.earliest())[0] == 0
    assert offset(OffsetSpec.latest())[0] == END
    assert offset(OffsetSpec.max_timestamp()) == (8, TIMES_MS[8])
    for moment, wanted in LOOK_UPS:
        assert offset(OffsetSpec.for_timestamp(moment)) == (wanted, TIMES_MS[wanted])
    assert offset(OffsetSpec.for_timestamp(TIMES_MS[8] + 1))[0] == -1


def test_list_offsets_with_kafka_python(filled: str, bootstrap: str) -> None:
    admin, place = KafkaAdminClient(bootstrap_servers=bootstrap), PythonPlace(filled, 0)

    def offset(spec: int) -> tuple[int, int]:
        found = admin.list_partition_offsets({place: spec})[place]
        return found.offset, found.timestamp

    try:
        assert offset(PythonSpec.EARLIEST) == (0, -1)
        assert offset(PythonSpec.LATEST) == (END, -1)
        assert offset(PythonSpec.EARLIEST_LOCAL) == (0, -1)
        assert offset(PythonSpec.LATEST_TIERED) == (-1, -1)
        assert offset(PythonSpec.MAX_TIMESTAMP) == (8, TIMES_MS[8])
        for moment, wanted in LOOK_UPS:
            assert offset(moment) == (wanted, TIMES_MS[wanted])
        assert offset(TIMES_MS[8] + 1) == (-1, -1)
    finally:
        admin.close()


def test_seek_by_time_with_kafka_python(filled: str, bootstrap: str) -> None:
    consumer, place = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None), PythonPlace(filled, 0)
    try:
        consumer.assign([place])
        assert consumer.beginning_offsets([place]) == {place: 0}
        assert consumer.end_offsets([place]) == {place: END}
        for moment, wanted in LOOK_UPS:
            found = consumer.offsets_for_times({place: moment})[place]
            assert (found.offset, found.timestamp) == (wanted, TIMES_MS[wanted])
            consumer.seek(place, found.offset)
            assert next(consumer).offset == wanted
        assert consumer.offsets_for_times({place: TIMES_MS[8] + 1})[place] is None
    finally:
        consumer.close()


def test_seek_by_time_with_aiokafka(filled: str, bootstrap: str) -> None:
    async def work() -> None:
        consumer, place = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None), AioPlace(filled, 0)
        await consumer.start()
        try:
            consumer.assign([place])
            assert await consumer.beginning_offsets([place]) == {place: 0}
            assert await consumer.end_offsets([place]) == {place: END}
            for moment, wanted in LOOK_UPS:
                found = (await consumer.offsets_for_times({place: moment}))[place]
                assert (found.offset, found.timestamp) == (wanted, TIMES_MS[wanted])
                consumer.seek(place, found.offset)
                assert (await asyncio.wait_for(consumer.getone(), 10)).offset == wanted
            assert (await consumer.offsets_for_times({place: TIMES_MS[8] + 1}))[place] is None
        finally:
            await consumer.stop()

    asyncio.run(work())


def test_seek_by_time_with_confluent_kafka(filled: str, bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "by-hand", "enable.auto.commit": False})
    try:
        assert consumer.get_watermark_offsets(TopicPartition(filled, 0), timeout=10) == (0, END)
        for moment, wanted in LOOK_UPS[2:4]:
            [found] = consumer.offsets_for_times([TopicPartition(filled, 0, moment)], timeout=10)
            assert found.offset == wanted
            consumer.assign([found])
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None
            assert message.offset() == wanted
    finally:
        consumer.close()


def test_query_by_time_with_kcat(filled: str, bootstrap: str) -> None:
    kcat = Kcat()
    need(kcat)
    for moment, wanted in LOOK_UPS:
        assert f"{filled} [0] offset {wanted}".encode() in kcat.run(
            bootstrap, "-Q", "-t", f"{filled}:0:{moment}"
        )
    tail = kcat.run(bootstrap, "-C", "-t", filled, "-p", "0", "-o", "-3", "-e", "-q", "-f", "%o ")
    assert tail == b"7 8 9 "


def test_an_offset_out_of_range_is_refused_or_reset(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic)
    with pytest.raises(KafkaException, match="_AUTO_OFFSET_RESET"):
        Confluent().read(bootstrap, topic, 1, start_offset=END + 5)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
    try:
        place = PythonPlace(topic, 0)
        consumer.assign([place])
        consumer.seek(place, END + 5)
        assert next(consumer).offset == 0
    finally:
        consumer.close()


def test_a_waiting_reader_is_woken_by_a_new_record(bootstrap: str, make_topic: MakeTopic) -> None:
    """A fetch at the end of the log waits at the server, and is answered as soon as there is a record."""
    topic = make_topic()
    settings = {"bootstrap.servers": bootstrap, "group.id": "by-hand", "fetch.wait.max.ms": 20_000}
    consumer = Consumer(settings | {"socket.timeout.ms": 60_000, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(1.0) is None
        Confluent().produce(bootstrap, topic, [Sample(value=b"at last")])
        began = time.monotonic()
        message = consumer.poll(15)
        assert message is not None
        assert message.value() == b"at last"
        assert time.monotonic() - began < 5
    finally:
        consumer.close()
