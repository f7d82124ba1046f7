"""Where partitions end that another broker leads: whatever it answers, whoever asked hears something."""

import pytest

from ottla.broker.end_offsets import find_end_offsets
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsResponse


class Leader:
    """A broker that answers at once."""

    def __init__(self, answer):
        self.answer = answer

    def ask(self, request, response, answered):
        answered(self.answer)


@pytest.mark.parametrize(
    ("index", "code", "wanted"),
    [
        (0, 0, 5),
        (0, 9_999, ErrorCode.UNKNOWN_SERVER_ERROR),
        (1, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
    ids=["an offset", "an unknown code", "a partition that was not asked for"],
)
def test_what_a_leader_says(station, index, code, wanted):
    topic_id = station.create("t").id
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    part = topic.ListOffsetsPartitionResponse(partition_index=index, error_code=code, offset=5)
    leader = Leader(ListOffsetsResponse(topics=[topic(name="t", partitions=[part])]))
    station.broker.other_leader = lambda name, index: leader
    heard = []
    find_end_offsets(station.broker, [(topic_id, 0)], heard.append)
    assert len(heard) == 1
    said = heard[0][topic_id, 0]
    assert (said.code if isinstance(said, BrokerError) else said) == wanted
