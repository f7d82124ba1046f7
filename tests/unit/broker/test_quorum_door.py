"""Fetches that wait at the quorum's leader: they wait no longer than their connection lives."""

import pytest

from ottla.broker.apis import metadata_fetch
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.uuid import METADATA_TOPIC_ID
from tests.unit.broker.conftest import ConnectionStandIn

MAX_WAIT_MS = 4_000


def parked(station):
    return station.quorum.driver.raft.replica.role.parked


def wait_for_news(station, connection, version=17):
    """Fetch at the end of the metadata log; the answer comes later."""
    topic = FetchRequest.FetchTopic
    place = topic.FetchPartition(
        fetch_offset=station.quorum.end_offset,
        last_fetched_epoch=station.quorum.epoch,
        current_leader_epoch=station.quorum.epoch,
        replica_directory_id=b"2" * 16,
        high_watermark=station.quorum.end_offset,
        partition_max_bytes=1 << 20,
    )
    request = FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=2),
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[topic(topic_id=METADATA_TOPIC_ID, partitions=[place])],
    )
    answers = []
    metadata_fetch.API.handle(request, version, connection, station.broker).then(answers.append)
    return answers


def connect(station):
    return ConnectionStandIn(**vars(station.connection) | {"on_close": []})


def close(connection):
    for callback in connection.on_close:
        callback()


@pytest.mark.parametrize("version", [11, 17])
def test_who_hangs_up_waits_no_longer(station, version):
    leaves, stays = connect(station), connect(station)
    wait_for_news(station, leaves, version)
    wait_for_news(station, leaves, version)
    answers = wait_for_news(station, stays, version)
    assert len(parked(station)) == 3
    close(leaves)
    assert len(parked(station)) == 1, "both of one connection are gone, and that of the other is not"
    assert list(station.broker.quorum_waiting) == [stays]
    station.create("news")
    assert len(answers) == 1 and not parked(station)


def test_who_was_answered_is_not_told_of_at_the_end(station, monkeypatch):
    connection, forgotten = connect(station), []
    answers = wait_for_news(station, connection)
    station.create("news")
    assert len(answers) == 1
    monkeypatch.setattr(station.quorum, "forget", forgotten.append)
    close(connection)
    assert not forgotten and not station.broker.quorum_waiting
