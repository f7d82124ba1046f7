"""Proposals of who is in sync: each ends, whatever is said of it, and the next ones go out."""

from types import SimpleNamespace

import pytest

from ottla.broker.proposing import Proposals
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_partition import AlterPartitionResponse
from tests.unit.broker.conftest import StillClock, StillTimers

TOPIC = bytes([7]) * 16
PROPOSAL = SimpleNamespace(leader_epoch=1, isr=[(1, 101)], partition_epoch=3)


class Office:
    def __init__(self):
        self.clock = StillClock()
        self.timers = StillTimers(self.clock)
        self.asked, self.ended, self.bugs = [], [], []
        self.broken = False
        roles = SimpleNamespace(refused=self.refused, agreed=self.agreed)
        line = SimpleNamespace(ask=lambda request, _, answered: self.asked.append((request, answered)))
        self.proposals = Proposals(1, lambda: 101, line, self.timers, roles)

    def refused(self, partition, proposal, code):
        if self.broken:
            raise RuntimeError("nobody expects this")
        self.ended.append((partition.index, code))

    def agreed(self, partition, *_):
        self.ended.append((partition.index, None))

    def propose(self, *indexes):
        for index in indexes:
            log = SimpleNamespace(report_bug=self.bugs.append)
            self.proposals.propose(SimpleNamespace(topic_id=TOPIC, index=index, log=log), PROPOSAL)
        self.timers.run()

    def answer(self, codes):
        kind = AlterPartitionResponse.TopicData
        parts = [kind.PartitionData(partition_index=index, error_code=code) for index, code in codes.items()]
        _, answered = self.asked.pop(0)
        answered(AlterPartitionResponse(topics=[kind(topic_id=TOPIC, partitions=parts)]))
        self.clock.ms += 1_000
        self.timers.run()


@pytest.fixture
def office():
    return Office()


def test_a_code_that_nobody_knows_is_an_unknown_error(office):
    office.propose(0, 1, 2)
    office.answer({0: 31_000, 1: ErrorCode.FENCED_LEADER_EPOCH})
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    assert office.ended == [(0, unknown), (1, ErrorCode.FENCED_LEADER_EPOCH), (2, unknown)]
    office.propose(3)
    assert len(office.asked) == 1


def test_an_answer_that_breaks_for_one_partition_reaches_the_others(office):
    office.propose(0, 1)
    office.broken = True
    office.answer({0: ErrorCode.FENCED_LEADER_EPOCH, 1: 0})
    assert office.ended == [(1, None)]
    assert len(office.bugs) == 1
    office.propose(2)
    assert len(office.asked) == 1, "the next ones go out"
