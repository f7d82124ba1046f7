"""Transactions against the rules written down a second time: who may do what, told by what was answered before.

A transaction ends once; epochs never go back; a fenced producer never succeeds; a log read again gives the same state.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.transactions.state import State
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.transactions.stage import NONE, P0, P1, P2, Stage

LAST_EPOCH = 32766
TIMEOUT_MS = 60_000
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
# Which state may follow which, in the log.
FOLLOWS = {
    None: {State.EMPTY},
    State.EMPTY: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
    State.ONGOING: {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT},
    State.PREPARE_COMMIT: {State.COMPLETE_COMMIT},
    State.PREPARE_ABORT: {State.COMPLETE_ABORT},
    State.COMPLETE_COMMIT: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
    State.COMPLETE_ABORT: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
}


class Rules:
    """What is known of one transactional id from outside.

    `holder` is who was given the producer id and epoch in force, or None when they were raised over its head; `last`
    is who may ask again for them; `ended` is the end that may be asked for again: by whom, and how it ended.
    """

    def __init__(self, v2):
        self.v2 = v2
        self.holder = self.last = self.ended = None
        self.current = None
        self.open = None  # the partitions, while there is a transaction
        self.ending = None  # (partitions, committed), while markers are on their way
        self.certain = True  # whether `last` is sure to be remembered
        self.opened_ms = 0

    def granted(self, pair, last):
        self.holder = self.current = pair
        self.last = last
        self.certain = True

    def fence(self):
        """The open transaction is aborted under an epoch that nobody was given."""
        self.ending = (self.open, False)
        self.open = None
        self.last = self.current if self.v2 else None
        self.ended = (self.current, False) if self.v2 else None
        self.certain = True
        self.holder = None

    def is_refused(self, code):
        assert isinstance(code, ErrorCode) and code is not NONE, code

    def init(self, who, answer):
        if self.ending:
            assert answer is CONCURRENT
        elif self.open is not None:
            if who is None or who[0] == self.current[0]:
                assert answer is CONCURRENT
                self.fence()
            else:
                self.is_refused(answer)
        elif self.current is None or who is None or who == self.holder:
            producer_id, epoch = answer
            if self.current is not None and self.current[1] < LAST_EPOCH:
                assert (producer_id, epoch) == (self.current[0], self.current[1] + 1)
            else:
                assert epoch == 0 and (self.current is None or producer_id > self.current[0])
            self.granted(answer, who if self.current is not None else None)
            self.ended = None
        elif self.holder is None and who == self.current:
            raise AssertionError("nobody was given this epoch, so nobody asks with it")
        elif who == self.last and self.current[1] < LAST_EPOCH and (self.certain or not is_code(answer)):
            assert answer == self.current
            # Who had another producer id is remembered for one step only.
            self.granted(answer, who if who[0] == answer[0] else None)
            self.ended = None
        else:
            self.is_refused(answer)

    def add(self, who, partitions, answer, now):
        if who == self.holder and not self.ending:
            assert answer is NONE
            if self.open is None:
                self.open, self.opened_ms = frozenset(), now
            self.open |= set(partitions)
            self.ended = None
        else:
            self.is_refused(answer)

    def end(self, who, committed, answer):
        if self.ending:
            assert answer is CONCURRENT or not self.v2
            self.is_refused(answer)
        elif self.v2 and who == self.holder and (self.open is not None or not committed):
            producer_id, epoch = answer
            if who[1] < LAST_EPOCH:
                assert (producer_id, epoch) == (who[0], who[1] + 1)
            else:
                assert producer_id > who[0] and epoch == 0
            if self.open:
                self.ending = (self.open, committed)
            self.open = None
            self.granted(answer, who)
            self.ended = (who, committed)
        elif not self.v2 and who == self.holder and self.open is not None:
            assert answer is NONE
            self.ending, self.open = (self.open, committed), None
            self.ended = (who, committed)
        elif self.ended == (who, committed):
            assert answer == (self.current if self.v2 else NONE)
            if self.v2:
                self.holder = self.current
        else:
            self.is_refused(answer)


def is_code(answer):
    return isinstance(answer, ErrorCode)


def play(steps, v2, worn):
    """Give the steps to a coordinator, and hold every answer against the rules."""
    stage = Stage(version=2 if v2 else 1)
    rules = Rules(v2)
    known = [(1, 0), (2, 5)]  # whom nobody knows
    markers_seen = []
    versions = {"add": 5, "end": 5} if v2 else {"add": 3, "end": 4}
    if worn:
        pair = stage.exhaust(epoch=LAST_EPOCH - 2)
        rules.granted(pair, None)
        known.append(pair)
    for name, *arguments in steps:
        if name == "begin":
            answer = stage.init()
            rules.init(None, answer)
        elif name == "recover":
            who = known[-1 - arguments[0] % len(known)]
            answer = stage.init(producer_id=who[0], epoch=who[1])
            rules.init(who, answer)
        elif name == "add":
            who = known[-1 - arguments[0] % len(known)]
            answer = stage.add(*who, *arguments[1], version=versions["add"])
            rules.add(who, arguments[1], answer, stage.now)
        elif name == "end":
            who = known[-1 - arguments[0] % len(known)]
            answer = stage.end(*who, committed=arguments[1], version=versions["end"])
            rules.end(who, arguments[1], answer)
        elif name == "lose":
            lose(stage, known[-1 - arguments[0] % len(known)], arguments[1], versions["end"])
            rules.certain = False
            answer = NONE
        else:
            answer = NONE
            world(stage, rules, name, arguments, markers_seen)
        if not is_code(answer):
            known.append(answer)
        check(stage, rules, markers_seen)
    return stage


def lose(stage, who, committed, version):
    """Let requests be decided and their records be lost, as when an append fails."""
    init = InitProducerIdRequest(
        transactional_id="tx", transaction_timeout_ms=1, producer_id=who[0], producer_epoch=who[1]
    )
    stage.machine.init_producer_id(init, 5, stage.now, 1)
    end = EndTxnRequest(transactional_id="tx", producer_id=who[0], producer_epoch=who[1], committed=committed)
    stage.machine.end(end, version, stage.now, 1)


def world(stage, rules, name, arguments, markers_seen):
    """What happens without a client."""
    if name == "settle":
        stage.settle()
        complete(stage, rules)
    elif name == "late" and markers_seen:
        # Markers that were asked for earlier come back, maybe for the second time; those on their way are no others.
        markers = markers_seen[arguments[0] % len(markers_seen)]
        stage.bench.ask(stage.machine.markers_written, markers)
        if rules.ending and markers is stage.markers[-1]:
            complete(stage, rules)
    elif name == "wait":
        stage.bench.pass_time(arguments[0])
        if rules.open is not None and stage.now > rules.opened_ms + TIMEOUT_MS:
            rules.fence()
            if rules.v2 and rules.current[1] == LAST_EPOCH:
                stage.settle()  # draws the producer id, without which nothing is aborted
                complete(stage, rules)
    elif name == "reload":
        stage.reload()
        if rules.last is not None:
            rules.last, rules.certain = None, True


def complete(stage, rules):
    rules.ending = None
    there = stage.machine.transactions.get("tx")
    if there is not None:
        rules.current = (there.producer_id, there.producer_epoch)


def check(stage, rules, markers_seen):
    there = stage.machine.transactions.get("tx")
    if there is None:
        assert rules.current is None
        return
    for markers in stage.markers:
        if markers not in markers_seen:
            markers_seen.append(markers)
    if rules.ending:
        partitions, committed = rules.ending
        assert there.state is (State.PREPARE_COMMIT if committed else State.PREPARE_ABORT)
        latest = stage.markers[-1]
        assert (set(latest.partitions), latest.committed) == (partitions, committed)
        assert (latest.producer_id, latest.producer_epoch) == there[:2]
    else:
        assert not there.state.settling
        assert (there.state is State.ONGOING) == (rules.open is not None)
        assert there.partitions == (rules.open or frozenset())
        rules.current = there[:2]


def check_log(stage):
    state, epochs = None, {}
    for record in stage.records:
        value = record.value
        now = State(value.transaction_status)
        assert now in FOLLOWS[state], (state, now)
        state = now
        assert value.producer_epoch >= epochs.get(value.producer_id, 0)
        epochs[value.producer_id] = value.producer_epoch
    fresh = stage.replayed()
    assert fresh.transactions == stage.machine.transactions


# Mostly whoever was given an epoch last, or the one before.
someone = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3])
step = st.one_of(
    st.tuples(st.just("begin")),
    st.tuples(st.just("recover"), someone),
    st.tuples(st.just("add"), someone, st.lists(st.sampled_from([P0, P1, P2]), min_size=1, max_size=3)),
    st.tuples(st.just("add"), someone, st.lists(st.sampled_from([P0, P1, P2]), min_size=1, max_size=3)),
    st.tuples(st.just("end"), someone, st.booleans()),
    st.tuples(st.just("end"), someone, st.booleans()),
    st.tuples(st.just("settle")),
    st.tuples(st.just("settle")),
    st.tuples(st.just("late"), st.integers(0, 20)),
    st.tuples(st.just("wait"), st.sampled_from([1, 30_000, 61_000])),
    st.tuples(st.just("lose"), someone, st.booleans()),
    st.tuples(st.just("reload")),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(step, min_size=8, max_size=50), st.booleans())
def test_transactions_v2(steps, worn):
    check_log(play(steps, v2=True, worn=worn))


@settings(max_examples=200, deadline=None)
@given(st.lists(step, min_size=8, max_size=50), st.booleans())
def test_transactions_of_clients_before_v2(steps, worn):
    check_log(play(steps, v2=False, worn=worn))
