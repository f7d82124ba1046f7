"""The broker that users get for their own tests."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing import Broker, BrokerFailed
from tests.peers.deadline import eventually

pytest_plugins = ["pytester"]


def write(broker, count):
    refused = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce("t", str(number), on_delivery=lambda error, _: error and refused.append(error))
    assert producer.flush(20) == 0
    assert not refused


def read(broker, count):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        return [message.value() for message in consumer.consume(count, 20)]
    finally:
        consumer.close()


def test_it_serves_and_keeps_its_data_and_port_over_a_kill_and_restarts():
    with Broker() as broker:
        place, data = broker.bootstrap, Path(broker.data)
        write(broker, 5)
        broker.kill()
        broker.start()
        write(broker, 5)
        broker.restart()
        assert broker.bootstrap == place
        assert len(read(broker, 10)) == 10
        assert data.exists()
    assert not data.exists()


def test_settings_are_the_brokers_and_a_given_directory_stays(tmp_path):
    with Broker({"num.partitions": "3"}, data=str(tmp_path / "mine")) as broker:
        write(broker, 1)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        assert len(producer.list_topics("t", 10).topics["t"].partitions) == 3
    assert (tmp_path / "mine" / "meta.properties").exists()


def test_what_is_wrong_is_said():
    with pytest.raises(BrokerFailed, match="num.partitions"):
        Broker({"num.partitions": "many"}).start()
    with pytest.raises(BrokerFailed, match="with statement"):
        _ = Broker().bootstrap


def is_alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_it_ends_with_the_process_that_started_it():
    script = "from ottla.testing import Broker; b = Broker().start(); print(b.pid, flush=True); input()"
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid = int(parent.stdout.readline())
    assert is_alive(pid)
    parent.kill()
    parent.communicate()
    eventually(lambda: not is_alive(pid), 10)


def test_the_fixture_gives_a_broker_for_the_whole_run(pytester):
    pytester.makepyfile(
        """
        from ottla.testing import Broker
        seen = []

        def test_one(ottla_broker):
            assert isinstance(ottla_broker, Broker)
            seen.append(ottla_broker.bootstrap)

        def test_two(ottla_broker):
            assert [ottla_broker.bootstrap] == seen
        """
    )
    outcome = pytester.runpytest_subprocess()
    outcome.assert_outcomes(passed=2)
