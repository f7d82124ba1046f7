"""The third journey: CreateTopics → controller → metadata log → image → partitions, and the same after a restart."""

from pathlib import Path

import pytest

from ottla.wire.batch import read_records, scan
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.uuid import uuid_text
from tests.compat.absence import need_kafka
from tests.compat.chosen import CHOSEN, SERVERS
from tests.journeys.traveller import Traveller, batch
from tests.peers.deadline import eventually
from tests.peers.server import Server

TOPIC_RECORD = 2


def metadata_records(server: Server) -> list[bytes]:
    """The values in the metadata log, control records left out."""
    values = []
    for path in sorted((server.log_dir / "__cluster_metadata-0").glob("*.log")):
        data = path.read_bytes()
        for position, each in scan(data):
            if not each.is_control:
                values += [
                    record.value for record in read_records(data, position) if record.value is not None
                ]
    return values


def test_a_new_topic_is_in_the_log_in_the_metadata_and_on_disk(traveller: Traveller, topic: str) -> None:
    [told] = traveller.metadata(topic).topics
    assert (told.error_code, told.name) == (ErrorCode.NONE, topic)
    assert [(each.partition_index, each.leader_id, each.leader_epoch) for each in told.partitions] == [
        (0, 1, 0),
        (1, 1, 0),
        (2, 1, 0),
    ]
    # A metadata record is framed by its frame version, its type and its version, each a byte here.
    topics = [value for value in metadata_records(traveller.server) if value[1] == TOPIC_RECORD]
    assert sum(topic.encode() in value and told.topic_id in value for value in topics) == 1
    for partition in range(3):
        # The files of a partition may be made a moment after the topic, or with the first record.
        traveller.produce(topic, batch(b"first"), partition=partition)
        directory = traveller.server.log_dir / f"{topic}-{partition}"
        assert f"topic_id: {uuid_text(told.topic_id)}" in (directory / "partition.metadata").read_text()


def test_a_deleted_topic_is_gone_from_all_of_them(traveller: Traveller, topic: str) -> None:
    traveller.produce(topic, batch(b"short-lived"))
    wish = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=topic)], timeout_ms=5000)
    assert traveller.line.ask(wish, DeleteTopicsResponse, 6).responses[0].error_code == ErrorCode.NONE
    eventually(lambda: traveller.metadata(topic).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    eventually(lambda: not (traveller.server.log_dir / f"{topic}-0").exists())
    assert traveller.produce(topic, batch(b"too late")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_what_was_decided_outlives_the_process(ending: str, tmp_path: Path) -> None:
    if CHOSEN == "kafka":
        need_kafka()
    server = SERVERS[CHOSEN](tmp_path)
    with server:
        with Traveller(server) as traveller:
            topic_id = traveller.create_topic("lasting", 2, max_message_bytes=300)
            assert traveller.produce("lasting", batch(b"kept"), partition=1).base_offset == 0
        if ending == "killed":
            server.kill()
    with server, Traveller(server) as traveller:
        eventually(lambda: traveller.end_offset("lasting", 1) == 1)
        [told] = traveller.metadata("lasting").topics
        assert (told.topic_id, len(told.partitions)) == (topic_id, 2)
        assert traveller.produce("lasting", batch(b"x" * 400)).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert traveller.produce("lasting", batch(b"more"), partition=1).base_offset == 1
