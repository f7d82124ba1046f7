"""What is due at one moment is written together, and what is too long keeps nothing else from being written."""

import pytest

from ottla.replicated.decision import Decision, together
from ottla.replicated.host import Host, HostRules, nobody
from ottla.replicated.steps import STEP_COST, cost_of, in_steps
from ottla.wire.errors import BrokerError, ErrorCode


class Numbers:
    """A machine of numbers: `due` are decisions, each of its own."""

    def __init__(self, *due):
        self.due = due
        self.applied = []
        self.deadline = 0

    def apply(self, offset, record):
        self.applied.append(record)

    def expire(self, now):
        self.deadline = None
        return together([Decision(None, each, any_length=7 in each) for each in self.due])


class Sum:
    """A journal that takes records whose sum is at most 10, and breaks over 13."""

    def __init__(self, code=None):
        self.records, self.calls, self.code = [], [], code
        self.committed_offset = 100

    @property
    def end_offset(self):
        return len(self.records)

    def append(self, records, now, transactional=None, *, any_length=False):
        self.calls.append(tuple(records))
        if self.code is not None:
            raise BrokerError(self.code)
        if 13 in records:
            raise ValueError("it cannot be encoded")
        if sum(records) > 10 and not any_length:
            raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE)
        self.records += records
        return range(self.end_offset - len(records), self.end_offset)


def told(*due, code=None):
    """Tell a machine the time; return it, its journal, what was reported as too long, and what broke."""
    machine, journal, unwritable, broken = Numbers(*due), Sum(code), [], []
    rules = HostRules(
        lambda record: record,
        lambda: 5.0,
        lambda effect, error: None,
        broken.append,
        nobody,
        lambda name, error: unwritable.append((name, error.code)),
    )
    Host(machine, journal, rules=rules).expire(0)
    return machine, journal, unwritable, broken


def test_what_is_due_at_one_moment_is_one_batch():
    machine, journal, unwritable, broken = told((1, 2), (3,))
    assert journal.calls == [(1, 2, 3)] and machine.applied == [1, 2, 3]
    assert not unwritable and not broken


def test_what_is_too_long_together_is_written_alone_and_what_is_too_long_alone_is_reported():
    machine, _, unwritable, broken = told((8, 1), (11, 4), (5,))
    assert machine.applied == [8, 1, 5]
    assert unwritable == [(11, ErrorCode.MESSAGE_TOO_LARGE)] and not broken


def test_what_cannot_be_encoded_keeps_nothing_else_from_being_written():
    machine, _, unwritable, broken = told((1,), (13,), (2,))
    assert machine.applied == [1, 2]
    assert not unwritable and [type(each) for each in broken] == [ValueError]


def test_what_alone_is_too_long_is_reported():
    machine, _, unwritable, _ = told((12,))
    assert not machine.applied and unwritable == [(12, ErrorCode.MESSAGE_TOO_LARGE)]


def test_a_journal_that_takes_nothing_is_asked_once():
    machine, journal, unwritable, broken = told((1,), (2,), (3,), code=ErrorCode.NOT_ENOUGH_REPLICAS)
    assert journal.calls == [(1, 2, 3)] and not machine.applied
    assert not unwritable and not broken


def test_the_limit_does_not_hold_for_what_may_have_any_length():
    machine, _, unwritable, _ = told((12, 7))
    assert machine.applied == [12, 7] and not unwritable


def test_one_that_breaks_alone_is_raised():
    with pytest.raises(ValueError, match="encoded"):
        Host(Numbers((13,)), Sum()).expire(0)


def test_a_step_has_fewer_records_the_longer_their_names_are():
    for name, count in (("g", 1_000), ("g" * 32_767, 17)):
        pieces = ((cost_of(name), (name,)) for _ in range(3_000))
        steps = list(in_steps(pieces))
        assert len(steps[0].records) in range(count - 2, count + 2)
        assert all(each.any_length for each in steps)
    assert cost_of("") * 1_000 == STEP_COST
