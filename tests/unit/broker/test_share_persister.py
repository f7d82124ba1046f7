"""The way to the state of share partitions: here or at another broker, in order, and again when it passes."""

from types import SimpleNamespace

import pytest

from ottla.broker import share_persister
from ottla.broker.share_persister import Persister
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from tests.unit.broker.conftest import StillClock, StillTimers

TOPIC = bytes([5]) * 16
Data = WriteShareGroupStateRequest.WriteStateData
Result = WriteShareGroupStateResponse.WriteStateResult


def write(start_offset, partition=0):
    part = Data.PartitionData(partition=partition, start_offset=start_offset, state_batches=[])
    return WriteShareGroupStateRequest(group_id="g", topics=[Data(topic_id=TOPIC, partitions=[part])])


def answer(code=ErrorCode.NONE, partition=0):
    part = Result.PartitionResult(partition=partition, error_code=code)
    return WriteShareGroupStateResponse(results=[Result(topic_id=TOPIC, partitions=[part])])


class Peer:
    def __init__(self):
        self.asked = []

    def ask(self, request, response, answered):
        assert response is WriteShareGroupStateResponse
        self.asked.append((request.topics[0].partitions[0].start_offset, answered))


class Stand:
    def __init__(self):
        self.clock = StillClock()
        self.timers = StillTimers(self.clock)
        self.peer = Peer()
        self.leader = self.peer  # None when it is here
        self.here = []
        self.done = []
        broker = SimpleNamespace(
            other_leader=lambda topic, index: self.leader, call_later=self.timers.call_later
        )
        states = SimpleNamespace(
            index=lambda key: 0,
            one=lambda asked, key, wish, done: self.here.append((wish.start_offset, done)),
        )
        self.persister = Persister(broker, states)

    def write(self, start_offset, partition=0):
        def done(response):
            self.done.append((start_offset, response.results[0].partitions[0].error_code))

        self.persister.ask(write(start_offset, partition), done)


@pytest.fixture
def stand(monkeypatch):
    monkeypatch.setattr(share_persister, "make", lambda broker, topic, then: then(None))
    return Stand()


def test_writes_of_one_share_partition_go_one_after_the_other(stand):
    for number in (1, 2, 3):
        stand.write(number)
    stand.write(9, partition=1)
    assert [each[0] for each in stand.peer.asked] == [1, 9]
    stand.peer.asked[0][1](answer())
    assert [each[0] for each in stand.peer.asked] == [1, 9, 2]
    stand.peer.asked[2][1](answer())
    stand.peer.asked[3][1](answer())
    stand.peer.asked[1][1](answer(partition=1))
    assert stand.done == [(1, 0), (2, 0), (3, 0), (9, 0)]
    assert stand.persister._lines == {}


@pytest.mark.parametrize(
    "trouble", [ConnectionError("gone"), answer(ErrorCode.NOT_COORDINATOR)], ids=["lost", "moved"]
)
def test_what_passes_is_asked_again_of_whoever_leads_by_then(stand, trouble):
    stand.write(1)
    stand.write(2)
    stand.peer.asked[0][1](trouble)
    stand.leader = None  # by now it is here
    stand.clock.ms += 200
    stand.timers.run()
    assert [each[0] for each in stand.here] == [1]
    stand.here[0][1](SimpleNamespace(error_code=0))
    assert [each[0] for each in stand.here] == [1, 2]
    stand.here[1][1](SimpleNamespace(error_code=0))
    assert stand.done == [(1, 0), (2, 0)]
    assert stand.persister._lines == {}


def test_what_does_not_pass_is_told(stand):
    stand.write(1)
    stand.peer.asked[0][1](answer(ErrorCode.FENCED_STATE_EPOCH))
    assert stand.done == [(1, ErrorCode.FENCED_STATE_EPOCH)]
    stand.write(2)
    for _ in range(20):
        if stand.peer.asked[1:]:
            stand.peer.asked.pop()[1](ConnectionError("gone"))
        stand.clock.ms += 1000
        stand.timers.run()
    assert stand.done[1:] == [(2, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
