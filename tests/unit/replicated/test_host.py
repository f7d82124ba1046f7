"""The host: replies wait for what their decisions have seen, in order, and a failed append changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import Host, HostRules
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError


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

    def append(self, records: Sequence[object], now: int, *, any_length: bool = False) -> range:
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


def test_a_refusal_waits_for_nothing(host: Host[Counter], journal: Memory) -> None:
    refusal = BrokerError(ErrorCode.INVALID_REQUEST)

    def refuse(machine: Counter, now: int) -> Decision[int]:
        raise refusal

    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    host.submit(refuse, replies.append, 0)
    host.submit(lambda machine, now: Decision("no", is_refusal=True), replies.append, 0)
    assert replies == [refusal, "no"]
    commit(host, journal, 1)
    assert replies == [refusal, "no", 5]


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
    assert [getattr(reply, "code", reply) for reply in replies] == [ErrorCode.MESSAGE_TOO_LARGE, 1, 2]
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


class Patient:
    """A host whose records are about the number modulo 10, and whose replies wait for five seconds."""

    def __init__(self, journal: Memory) -> None:
        self.now_s = 0.0
        self.performed: list[object] = []
        self.late: list[object] = []
        self.broken: list[Exception] = []
        rules = HostRules(
            lambda record: record % 10,
            lambda: self.now_s + 5,
            lambda effect, error: self.late.append((effect, error.code)),
            self.broken.append,
            self._diverged,
        )
        self.host = Host(Counter(), journal, self.performed.append, rules=rules)

    def _diverged(self, error: Exception) -> None:
        self.broken.append(error)
        self.host.drop(BrokerError(ErrorCode.NOT_COORDINATOR))


def test_a_reply_without_records_waits_for_those_about_its_names_alone(journal: Memory) -> None:
    host = Patient(journal).host
    replies: list[object] = []
    host.submit(lambda machine, now: machine.add(3), replies.append, 0, (3,))
    host.submit(lambda machine, now: Decision("about 4"), replies.append, 0, (4,))
    host.submit(lambda machine, now: Decision("about none"), replies.append, 0, ())
    host.submit(lambda machine, now: Decision("about 3"), replies.append, 0, (4, 3))
    host.submit(lambda machine, now: Decision("about all"), replies.append, 0)
    assert replies == ["about 4", "about none"]
    host.written_otherwise()
    host.submit(lambda machine, now: Decision("about 5"), replies.append, 0, (5,))
    assert replies == ["about 4", "about none"]
    commit(host, journal, 1)
    assert replies == ["about 4", "about none", 3, "about 3", "about all", "about 5"]
    assert not host._written


def test_who_waits_for_too_long_is_told_and_its_effects_come_when_it_is_committed(journal: Memory) -> None:
    patient = Patient(journal)
    host = patient.host
    replies: list[object] = []
    host.submit(lambda machine, now: Decision("a", (1,), (Ring("ding"),)), replies.append, 0)
    patient.now_s = 3.0
    host.submit(lambda machine, now: Decision("b", (2,)), replies.append, 0)
    assert (host.waiting, host.next_timeout_s) == (2, 5.0)
    host.time_out(4.9)
    assert replies == []
    host.time_out(5.0)
    assert [getattr(reply, "code", None) for reply in replies] == [ErrorCode.REQUEST_TIMED_OUT]
    assert patient.late == [(Ring("ding"), ErrorCode.REQUEST_TIMED_OUT)]
    assert (host.waiting, host.next_timeout_s, host.machine.total) == (1, 8.0, 3)
    assert patient.performed == []
    commit(host, journal, 2)
    assert patient.performed == [Ring("ding")]
    assert replies[1:] == ["b"]
    assert (host.waiting, host.next_timeout_s) == (0, None)
    host.time_out(100.0)
    assert len(replies) == 2


def test_a_callback_that_breaks_keeps_nobody_else_from_an_answer(journal: Memory) -> None:
    patient = Patient(journal)
    replies: list[object] = []

    def breaks(_: object) -> None:
        raise ValueError("broken")

    patient.host.submit(lambda machine, now: machine.add(1), breaks, 0)
    patient.host.submit(lambda machine, now: machine.add(2), replies.append, 0)
    commit(patient.host, journal, 2)
    assert replies == [3]
    assert [str(error) for error in patient.broken] == ["broken"]


def test_records_that_cannot_be_encoded_take_no_other_reply_with_them(journal: Memory) -> None:
    patient = Patient(journal)
    host, replies = patient.host, list[object]()
    append = journal.append

    def pick(records: Sequence[object], now: int) -> range:
        if 13 in records:
            raise ProtocolError("must be an int64")
        return append(records, now)

    journal.append = pick  # type: ignore[method-assign]
    for number in (1, 13, 2):
        host.gather(lambda machine, now, number=number: Decision(number, (number,)), replies.append, 0)
    host.submit(lambda machine, now: machine.add(5), replies.append, 0)
    commit(host, journal, 3)
    assert [getattr(reply, "code", reply) for reply in replies] == [ErrorCode.UNKNOWN_SERVER_ERROR, 1, 2, 8]
    assert [str(error) for error in patient.broken] == ["must be an int64"]


def test_a_machine_that_cannot_take_in_what_was_written_is_given_up(
    journal: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for gathers in (False, True):
        patient = Patient(journal)
        replies: list[object] = []

        def breaks(self: Counter, offset: int, record: object) -> None:
            raise RuntimeError("unforeseen")

        patient.host.submit(lambda machine, now: machine.add(1), replies.append, 0)
        with monkeypatch.context() as broken:
            broken.setattr(Counter, "apply", breaks)
            if gathers:
                for _ in range(2):
                    patient.host.gather(lambda machine, now: machine.add(5), replies.append, 0)
                patient.host.write(0)
            else:
                patient.host.submit(lambda machine, now: machine.add(5), replies.append, 0)
        patient.host.submit(lambda machine, now: machine.add(5), replies.append, 0)
        assert [getattr(reply, "code", None) for reply in replies] == [ErrorCode.NOT_COORDINATOR] * (3 + gathers)
        assert len(patient.broken) == 1


def test_an_append_that_breaks_leaves_nobody_of_those_gathered_without_an_answer(
    journal: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Patient(journal)
    replies: list[object] = []

    def breaks(*arguments: object) -> range:
        raise RuntimeError("unforeseen")

    for _ in range(2):
        patient.host.gather(lambda machine, now: machine.add(5), replies.append, 0)
    with monkeypatch.context() as broken:
        broken.setattr(type(journal), "append", breaks)
        patient.host.write(0)
    assert [getattr(reply, "code", None) for reply in replies] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert len(patient.broken) == 2


@pytest.mark.parametrize("what", ["decision", "append"])
def test_a_decision_that_breaks_is_reported_and_refused_once(
    journal: Memory, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    patient = Patient(journal)
    host, replies = patient.host, list[object]()

    def breaks(*arguments: object) -> Decision[int]:
        raise RuntimeError("unforeseen")

    decide = breaks if what == "decision" else lambda machine, now: machine.add(5)
    with monkeypatch.context() as broken:
        if what == "append":
            broken.setattr(type(journal), "append", breaks)
        host.submit(decide, replies.append, 0)
        if what == "decision":
            assert host.gather(decide, replies.append, 0) is False
        with pytest.raises(RuntimeError):
            host.attempt(decide, replies.append, 0)
    refused = 2 if what == "decision" else 1
    assert [getattr(reply, "code", None) for reply in replies] == [ErrorCode.UNKNOWN_SERVER_ERROR] * refused
    assert [str(error) for error in patient.broken] == ["unforeseen"] * refused
    host.submit(lambda machine, now: machine.add(7), replies.append, 0)
    commit(host, journal, 1)
    assert replies[refused:] == [7], "the others are served"


def test_without_rules_what_breaks_is_the_callers_to_hear(host: Host[Counter]) -> None:
    def breaks(*arguments: object) -> Decision[int]:
        raise RuntimeError("unforeseen")

    for submit in (host.submit, host.gather):
        with pytest.raises(RuntimeError):
            submit(breaks, pytest.fail, 0)


def test_who_breaks_over_the_refusal_of_a_dropped_host_is_told_once(journal: Memory) -> None:
    patient = Patient(journal)
    patient.host.drop(BrokerError(ErrorCode.NOT_COORDINATOR))
    told: list[object] = []

    def breaks(reply: object) -> None:
        told.append(reply)
        raise RuntimeError("unforeseen")

    patient.host.submit(lambda machine, now: machine.add(1), breaks, 0)
    assert (len(told), len(patient.broken)) == (1, 1)


def test_nobody_waits_for_a_record_that_somebody_else_has_written(journal: Memory) -> None:
    """A client's marker is in the log: the machine has not seen it, and nobody would say when it is committed."""
    host: Host[Counter] = Host(Counter(), journal)
    answers: list[object] = []
    journal.records.append("a marker")
    host.submit(lambda machine, now: Decision("nothing to write"), answers.append, 0)
    assert answers == ["nothing to write"]
    host.submit(lambda machine, now: machine.add(5), answers.append, 0)
    host.submit(lambda machine, now: Decision("behind it"), answers.append, 0)
    assert answers == ["nothing to write"]
    host.commit(journal.end_offset)
    assert answers == ["nothing to write", 5, "behind it"]
