"""The host: replies wait for what their decisions have seen, in order, and a failed append changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import Host
from ottla.wire.errors import BrokerError, ErrorCode


class Counter:
    """A machine whose state is the sum of its records."""

    def __init__(self) -> None:
        self.total = 0
        self.offsets: list[int] = []
        self.deadline: int | None = None

    def apply(self, offset: int, record: int) -> None:
        self.offsets.append(offset)
        self.total += record

    def expire(self, now: int) -> Decision[None]:
        self.deadline = None
        return Decision(None, (-1,))

    def add(self, number: int) -> Decision[int]:
        return Decision(self.total + number, (number,))


class Memory:
    """A journal in memory."""

    def __init__(self) -> None:
        self.records: list[object] = []
        self.committed_offset = 0
        self.full = False

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def append(self, records: Sequence[object], now: int) -> range:
        if self.full:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)
        start = len(self.records)
        self.records += records
        return range(start, len(self.records))


@dataclass(frozen=True, slots=True)
class Ring(Effect):
    bell: str


@pytest.fixture
def journal() -> Memory:
    return Memory()


@pytest.fixture
def host(journal: Memory) -> Host[Counter]:
    return Host(Counter(), journal)


def commit(host: Host[Counter], journal: Memory, offset: int) -> None:
    journal.committed_offset = offset
    host.commit(offset)


def test_a_reply_waits_until_its_records_are_committed(host: Host[Counter], journal: Memory) -> None:
    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    assert host.machine.total == 5
    assert replies == []
    commit(host, journal, 1)
    assert replies == [5]


def test_the_next_decision_sees_what_is_not_committed_yet(host: Host[Counter], journal: Memory) -> None:
    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    host.submit(lambda machine, now: machine.add(2), replies.append, 0)
    commit(host, journal, 1)
    assert replies == [5]
    commit(host, journal, 2)
    assert replies == [5, 7]


def test_a_decision_without_records_waits_for_those_before_it(host: Host[Counter], journal: Memory) -> None:
    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    host.submit(lambda machine, now: Decision(machine.total), replies.append, 0)
    assert replies == []
    commit(host, journal, 1)
    assert replies == [5, 5]


def test_a_read_is_answered_at_once_when_nothing_is_pending(host: Host[Counter]) -> None:
    replies: list[object] = []
    host.submit(lambda machine, now: Decision(machine.total), replies.append, 0)
    assert replies == [0]


def test_a_refusal_waits_like_any_reply(host: Host[Counter], journal: Memory) -> None:
    refusal = BrokerError(ErrorCode.INVALID_REQUEST)

    def refuse(machine: Counter, now: int) -> Decision[int]:
        raise refusal

    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    host.submit(refuse, replies.append, 0)
    assert replies == []
    commit(host, journal, 1)
    assert replies == [5, refusal]


def test_an_append_that_fails_leaves_the_machine_alone(host: Host[Counter], journal: Memory) -> None:
    journal.full = True
    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    assert isinstance(replies[0], BrokerError)
    assert host.machine.total == 0
    journal.full = False
    host.submit(lambda machine, now: machine.add(1), replies.append, 0)
    assert host.machine.total == 1


def test_effects_are_performed_once_committed_and_before_the_reply(journal: Memory) -> None:
    heard: list[object] = []
    host = Host(Counter(), journal, heard.append)
    host.submit(lambda machine, now: Decision("done", (1,), (Ring("ding"),)), heard.append, 0)
    assert heard == []
    commit(host, journal, 1)
    assert heard == [Ring("ding"), "done"]


def test_a_dropped_host_refuses_what_waits_and_what_comes(host: Host[Counter]) -> None:
    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    host.drop()
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    assert [getattr(reply, "code", None) for reply in replies] == [ErrorCode.NOT_CONTROLLER] * 2
    assert host.machine.offsets == [0]


def test_time_is_told_at_the_deadline_and_not_before(host: Host[Counter], journal: Memory) -> None:
    host.machine.deadline = 100
    host.expire(99)
    assert journal.records == []
    host.expire(100)
    assert journal.records == [-1]
    host.expire(101)
    assert journal.records == [-1]


def test_gathered_decisions_are_one_append(host: Host[Counter], journal: Memory) -> None:
    replies: list[object] = []
    appends: list[int] = []
    append = journal.append
    journal.append = lambda records, now: appends.append(len(records)) or append(records, now)  # type: ignore[method-assign, assignment, return-value, func-returns-value]
    assert host.gather(lambda machine, now: Decision("a", (1, 2)), replies.append, 0)
    assert not host.gather(lambda machine, now: Decision("b", (3,)), replies.append, 0)
    assert not host.gather(lambda machine, now: Decision("c"), replies.append, 0)
    assert (host.machine.total, journal.records, replies) == (0, [], [])
    host.write(0)
    assert appends == [3]
    assert (host.machine.offsets, host.machine.total) == ([0, 1, 2], 6)
    commit(host, journal, 2)
    assert replies == []
    commit(host, journal, 3)
    assert replies == ["a", "b", "c"]


def test_any_other_decision_finds_what_was_gathered_applied(host: Host[Counter], journal: Memory) -> None:
    replies: list[object] = []
    host.gather(lambda machine, now: Decision("first", (4,)), replies.append, 0)
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    assert journal.records == [4, 5]
    commit(host, journal, 2)
    assert replies == ["first", 9]
    host.write(0)
    assert journal.records == [4, 5]


def test_one_that_cannot_be_written_with_the_others_fails_alone(host: Host[Counter], journal: Memory) -> None:
    replies: list[object] = []
    append = journal.append

    def pick(records: Sequence[object], now: int) -> range:
        if 13 in records:
            raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE)
        return append(records, now)

    journal.append = pick  # type: ignore[method-assign]
    for number in (1, 13, 2):
        host.gather(lambda machine, now, number=number: Decision(number, (number,)), replies.append, 0)
    host.write(0)
    commit(host, journal, 2)
    assert [getattr(reply, "code", reply) for reply in replies] == [1, ErrorCode.MESSAGE_TOO_LARGE, 2]
    assert (journal.records, host.machine.total) == ([1, 2], 3)


def test_a_dropped_host_refuses_what_was_gathered(host: Host[Counter], journal: Memory) -> None:
    replies: list[object] = []
    host.gather(lambda machine, now: Decision(1, (1,)), replies.append, 0)
    host.drop(BrokerError(ErrorCode.NOT_COORDINATOR))
    host.gather(lambda machine, now: Decision(2, (2,)), replies.append, 0)
    host.write(0)
    assert [getattr(reply, "code", None) for reply in replies] == [ErrorCode.NOT_COORDINATOR] * 2
    assert journal.records == []


def test_what_a_journal_says_is_excused_once(journal: Memory) -> None:
    journal.full = True
    replies: list[object] = []
    host = Host(
        Counter(), journal, excuse=lambda error: BrokerError(ErrorCode.NOT_COORDINATOR, error.message)
    )
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    host.gather(lambda machine, now: machine.add(5), replies.append, 0)
    host.write(0)
    assert [getattr(reply, "code", None) for reply in replies] == [ErrorCode.NOT_COORDINATOR] * 2
