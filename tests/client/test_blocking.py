"""The blocking clients: the same clients without asyncio, from plain threads."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from ottla.client import AcknowledgeType, RebalanceListener, Record, TopicPartition
from ottla.client.admin import Resource
from ottla.client.blocking import Admin, Consumer, Producer, ShareConsumer
from ottla.client.deprecation import OttlaDeprecationWarning
from ottla.client.errors import (
    BufferFull,
    ClientError,
    Closed,
    NoBroker,
    RecordTooLarge,
    SerializationFailed,
    WrongState,
)
from ottla.metadata.settings.error import SettingError
from tests.peers.server import free_ports

EARLIEST = {"auto.offset.reset": "earliest"}


def no_thread_left() -> bool:
    return not [each for each in threading.enumerate() if each.name == "ottla-client"]


@pytest.fixture(autouse=True)
def _ends_with_its_thread():
    yield
    assert no_thread_left()


def test_ten_lines_to_the_first_message(bootstrap, topic):
    with Producer(bootstrap) as producer:
        producer.send(topic, b"hello")
    with Consumer(bootstrap, EARLIEST, group_id=topic) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            assert record.value == b"hello"
            break


def test_records_of_a_thread_keep_their_order_and_each_delivery_tells_its_own(bootstrap, topic):
    with Producer(bootstrap) as producer:
        deliveries = [producer.send(topic, b"%d" % n, partition=0) for n in range(5_000)]
        assert [each.result().offset for each in deliveries] == list(range(5_000))
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found = []
        while len(found) < 5_000:
            found += consumer.poll(timeout=5.0)
        assert [record.value for record in found] == [b"%d" % n for n in range(5_000)]
        assert consumer.position(TopicPartition(topic, 0)) == 5_000


@pytest.mark.parametrize(
    "record",
    [{"value": "text"}, {"key": "text"}, {"value": 5}, {"topic": b"bytes"}, {"topic": None}, {"topic": ["list"]}],
)
def test_what_can_be_no_record_is_refused_where_it_is_sent(bootstrap, topic, record):
    with Producer(bootstrap) as producer:
        with pytest.raises(SerializationFailed):
            producer.send(**{"topic": topic, "value": b"", **record})
        assert producer.send_and_wait(topic, b"fine").offset == 0


@pytest.mark.parametrize(
    "record",
    [
        {"partition": "0"},
        {"headers": [("name", "text")]},
        {"headers": 5},
        {"timestamp": "now"},
        {"value": bytes(2_000_000)},
    ],
)
def test_what_nobody_asks_about_is_logged_and_keeps_no_other_record_waiting(bootstrap, topic, record, caplog):
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, b"first")
        producer.send(**{"topic": topic, "value": b"", **record})
        assert producer.send_and_wait(topic, b"behind it").offset == 1
        assert [each.levelname for each in caplog.records if topic in each.message] == ["WARNING"]
        asked = producer.send(**{"topic": topic, "value": b"", **record})
        with pytest.raises(ClientError):
            asked.result()
        del asked
    assert len([each for each in caplog.records if topic in each.message]) == 1


def test_a_producer_takes_records_while_it_is_open_alone(bootstrap, topic):
    producer = Producer(bootstrap)
    with pytest.raises(WrongState, match="not open"):
        producer.send(topic, b"early")
    producer.open()
    assert producer.send_and_wait(topic, b"in time").offset == 0
    producer.close()
    with pytest.raises(Closed):
        producer.send(topic, b"late")


def test_many_threads_send_through_one_producer(bootstrap, topic):
    with Producer(bootstrap, linger_ms=1) as producer:

        def work(name):
            for n in range(500):
                producer.send(topic, b"%d %d" % (name, n), partition=0)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        producer.flush()
        assert producer.statistics().records_sent == 2_000
    with Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        seen = {n: [] for n in range(4)}
        while sum(map(len, seen.values())) < 2_000:
            for record in consumer.poll(timeout=5.0):
                name, n = map(int, record.value.split())
                seen[name].append(n)
        assert all(each == list(range(500)) for each in seen.values())


def test_errors_of_a_record_come_out_of_its_delivery_and_callbacks_hear_of_them(bootstrap, topic):
    heard = []
    with Producer(bootstrap, max_request_size=1_000) as producer:
        refused = producer.send(topic, bytes(2_000))
        refused.add_done_callback(lambda each: heard.append(each.exception()))
        fine = producer.send(topic, b"x")
        fine.add_done_callback(lambda each: heard.append(each.exception()))
        with pytest.raises(RecordTooLarge):
            refused.result(10)
        assert fine.result(10).offset == 0
        assert isinstance(refused.exception(), RecordTooLarge)
    assert [type(each) for each in heard] == [RecordTooLarge, type(None)]


def test_who_finds_no_room_waits_and_then_hears_why(bootstrap, topic):
    [port] = free_ports(1)
    with Producer(bootstrap, buffer_memory=100_000, batch_size=16_384, max_block_ms=200) as producer:
        producer.send_and_wait(topic, b"first")
        deliveries = [producer.send(topic, bytes(10_000)) for _ in range(100)]
        assert {each.result().topic for each in deliveries} == {topic}
    with pytest.raises(NoBroker, match="hint:"), Producer(f"127.0.0.1:{port}", max_block_ms=200):
        pass


def fail_within(producer, topic):
    with producer.transaction():
        producer.send(topic, b"dropped")
        _ = 1 / 0


def test_transactions(bootstrap, topic):
    with Producer(bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"kept")
        with pytest.raises(ZeroDivisionError):
            fail_within(producer, topic)
        with producer.transaction():
            producer.send(topic, b"kept too")
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        found = []
        while len(found) < 2:
            found += [record.value for record in consumer.poll(timeout=5.0)]
        assert found == [b"kept", b"kept too"]


def test_a_listener_runs_in_the_thread_that_polls_and_may_commit(bootstrap, topic):
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, b"x")
    me, told = threading.current_thread(), []

    class Listener(RebalanceListener):
        def on_partitions_assigned(self, partitions):
            assert threading.current_thread() is me
            told.append(("assigned", list(partitions)))

        def on_partitions_revoked(self, partitions):
            consumer.commit()
            told.append(("revoked", list(partitions)))

    place = TopicPartition(topic, 0)
    with Consumer(bootstrap, EARLIEST, group_id=topic, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], listener=Listener())
        while not consumer.poll(timeout=1.0):
            pass
        consumer.unsubscribe()
        assert [what for what, _ in told] == ["assigned", "revoked"]
        assert consumer.committed([place])[place].offset == 1


def test_the_admin_by_noun(bootstrap, topic):
    with Admin(bootstrap) as admin:
        admin.topics.create(f"{topic}-made", partitions=3)
        assert admin.topics.list()[f"{topic}-made"].partitions == 3
        assert "create" in dir(admin.topics)
        with pytest.raises(ClientError):
            admin.topics.create(f"{topic}-made")


def test_a_share_consumer(bootstrap, topic):
    with Admin(bootstrap) as admin:
        admin.configs.alter({Resource.group(topic): {"share.auto.offset.reset": "earliest"}})
    with Producer(bootstrap) as producer:
        for value in (b"a", b"b", b"c"):
            producer.send_and_wait(topic, value)
    told = []
    with ShareConsumer(bootstrap, group_id=topic, share_acknowledgement_mode="explicit") as consumer:
        consumer.set_acknowledgement_callback(lambda offsets, error: told.append((offsets, error)))
        consumer.subscribe([topic])
        assert consumer.subscription == {topic}
        found: list[Record] = []
        while len(found) < 3:
            for record in consumer.poll(timeout=5):
                consumer.acknowledge(record)
                found.append(record)
        assert [record.value for record in found] == [b"a", b"b", b"c"]
        assert set(consumer.commit(timeout=5).values()) == {None}
        assert consumer.acquisition_lock_timeout == 5.0
        assert consumer.statistics()["acknowledged"] == 3
        with pytest.raises(WrongState):
            consumer.acknowledge(found[0], AcknowledgeType.RELEASE)
    assert told
    with pytest.raises(Closed):
        consumer.poll()


def test_iterating_over_a_share_consumer(bootstrap, topic):
    with Admin(bootstrap) as admin:
        admin.configs.alter({Resource.group(topic): {"share.auto.offset.reset": "earliest"}})
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, b"job")
    with ShareConsumer(bootstrap, group_id=topic) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            assert (record.value, record.delivery_count) == (b"job", 1)
            break


def test_times_may_be_datetimes(bootstrap, topic):
    moment = datetime(2024, 6, 1, 12, tzinfo=UTC)
    place = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        assert producer.send_and_wait(topic, b"x", timestamp=moment).datetime == moment
        with pytest.raises(SerializationFailed, match="datetime"):
            producer.send_and_wait(topic, b"x", timestamp="noon")  # type: ignore[arg-type]
    with Consumer(bootstrap) as consumer:
        found = consumer.offsets_for_times({place: moment - timedelta(hours=1)}, timeout=timedelta(seconds=10))[place]
        assert found is not None
        assert (found.offset, found.timestamp) == (0, 1_717_243_200_000)
        assert consumer.offsets_for_times({place: moment + timedelta(hours=1)})[place] is None


def test_old_names_still_work(bootstrap, topic):
    outcomes, place = [], TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        with pytest.warns(OttlaDeprecationWarning, match="use Producer.send_and_wait"):
            assert producer.deliver(topic, b"x").offset == 0
        delivery = producer.send(topic, b"y")
        with pytest.warns(OttlaDeprecationWarning, match="timeout_s.*use timeout"):
            assert delivery.result(timeout_s=5).offset == 1
        with pytest.warns(OttlaDeprecationWarning, match="add_done_callback"):
            delivery.when_done(lambda metadata, error: outcomes.append((metadata.offset, error)))
        producer.flush()
        with pytest.warns(OttlaDeprecationWarning, match="use timeout=5.0"):
            producer.close(timeout_ms=5_000)  # type: ignore[call-arg]
    assert outcomes == [(1, None)]
    with Consumer(bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning()
        with pytest.warns(OttlaDeprecationWarning, match="use timeout=10.0, in seconds"):
            assert len(consumer.poll(10_000)) == 2  # type: ignore[misc]
        started = time.monotonic()
        with pytest.warns(OttlaDeprecationWarning):
            assert consumer.poll(timeout_ms=100) == []  # type: ignore[call-arg]
        assert time.monotonic() - started < 5
        with pytest.warns(OttlaDeprecationWarning, match="use times"):
            assert consumer.offsets_for_times(times_ms={place: 0})[place].offset == 0  # type: ignore[call-arg]
    with Admin(bootstrap) as admin, pytest.warns(OttlaDeprecationWarning, match="use timeout=5.0"):
        assert topic in admin.topics.list(timeout_ms=5_000)  # type: ignore[call-arg]


def test_misuse_is_told(bootstrap, topic):
    with pytest.raises(SettingError, match="linger.ms"):
        Producer(bootstrap, linger_ms="soon")
    producer = Producer(bootstrap)
    with pytest.raises(WrongState, match="open"):
        producer.flush()
    producer.close()
    with pytest.raises(Closed):
        producer.flush()
    producer.close()


def test_an_interrupted_wait_leaves_the_consumer_usable(bootstrap, topic, monkeypatch):
    from ottla.world.loop_thread import Waiting

    with Producer(bootstrap) as producer, Consumer(bootstrap) as consumer:
        producer.send_and_wait(topic, b"x")
        consumer.assign([(topic, 0)])
        consumer.seek_to_end()
        assert not consumer.poll(timeout=0.1)

        def interrupted(self):
            time.sleep(0.05)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Waiting, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(timeout=60.0)
        producer.send_and_wait(topic, b"y")
        assert [record.value for record in consumer.poll(timeout=5.0)] == [b"y"]


def test_no_room_without_waiting(bootstrap, topic):
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, b"x")
        producer._gate.shut()
        with pytest.raises(BufferFull):
            producer.send_nowait(topic, b"y")
        producer._gate.open()
        assert producer.send_nowait(topic, b"y").result().offset == 1
