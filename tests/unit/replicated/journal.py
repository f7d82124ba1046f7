"""A journal in memory and a host around a machine: what the tests of coordinators drive their machines with."""

import inspect

from ottla.partition.journal import LENGTH_MAX
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import Answer, stored_bytes
from ottla.wire.errors import BrokerError, ErrorCode

NOW = 1_800_000_000_000


class Bench:
    """Runs one machine as a host would, everything committed at once.

    `.ask` gives a command to the machine and returns its reply; answers that come later are in `.answers` under their
    token, other effects in `.effects`. `.records` is the log.
    """

    def __init__(self, machine):
        self.machine = machine
        self.now = NOW
        self.log = []  # ("record", record) | ("pending", producer id, record) | ("end", producer id, committed)
        self.answers = {}
        self.effects = []
        self.is_full = False  # while it is, the journal refuses records

    @property
    def records(self):
        return [entry[-1] for entry in self.log if entry[0] != "end"]

    def ask(self, command, *arguments, **how):
        """Let the machine decide; a BrokerError comes out as it is. `now` is filled in where the command takes it."""
        if "now" in inspect.signature(command).parameters:
            how.setdefault("now", self.now)
        return self._carry_out(command(*arguments, **how))

    def _carry_out(self, decision: Decision):
        if self.is_full and decision.records:
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
        for record in decision.records:
            if decision.transactional is not None:
                self.log.append(("pending", decision.transactional[0], record))
            else:
                self.log.append(("record", record))
            _take(self.machine, len(self.log) - 1, self.log[-1])
        for effect in decision.after:
            if isinstance(effect, Answer):
                assert effect.token not in self.answers, f"token {effect.token} is answered twice"
                self.answers[effect.token] = effect.message
            else:
                self.effects.append(effect)
        return decision.reply

    def take_steps(self, steps):
        """Do long work; return how many steps it took."""
        count = 0
        for decision in steps:
            count += 1
            self._carry_out(decision)
        return count

    def end_transaction(self, producer_id, *, committed):
        """Put a marker into the log."""
        self.log.append(("end", producer_id, committed))
        _take(self.machine, len(self.log) - 1, self.log[-1])

    def pass_time(self, ms):
        """Let time pass, and stop wherever the machine has something to do."""
        end = self.now + ms
        for _ in range(100_000):
            deadline = self.machine.deadline
            if deadline is None or deadline > end:
                self.now = end
                return
            self.now = max(self.now, deadline)
            self._carry_out(self.machine.expire(self.now))
        raise AssertionError("the machine is never done")

    def replayed(self, fresh):
        """Return a fresh machine that has read the log."""
        for offset, entry in enumerate(self.log):
            _take(fresh, offset, entry)
        return fresh

    def refusal(self, command, *arguments, **how):
        """Return the error code a command is refused with."""
        try:
            reply = self.ask(command, *arguments, **how)
        except BrokerError as error:
            return error.code
        raise AssertionError(f"not refused: {reply}")


def _take(machine, offset, entry):
    if entry[0] == "record":
        machine.apply(offset, entry[1])
    elif entry[0] == "pending":
        machine.apply_pending(entry[1], offset, entry[2])
    else:
        machine.end_transaction(entry[1], entry[2])


class Limited:
    """A journal that refuses what is longer than a batch of the log may be, as a partition does."""

    def __init__(self, length_max=1 << 20):
        self.length_max = length_max
        self.records = []
        self.lengths = []  # of what was written, and of what was refused below zero
        self.committed_offset = 1 << 60

    @property
    def end_offset(self):
        return len(self.records)

    def append(self, records, now, transactional=None, *, any_length=False):
        length = stored_bytes(records)
        if length > (LENGTH_MAX if any_length else self.length_max):
            self.lengths.append(-length)
            raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, f"batch of {length} bytes")
        self.lengths.append(length)
        self.records += records
        return range(self.end_offset - len(records), self.end_offset)


def run_out(host, now):
    """Let time be told until nothing is due; say how often that took."""
    for count in range(1000):
        deadline = host.machine.deadline
        if deadline is None or deadline > now:
            return count
        host.expire(now)
    raise AssertionError("it is due again and again")
