"""Idempotent producers against Kafka's rules written down a second time, as plainly as possible.

And one of our own: what a snapshot has forgotten is known to have been written, by the sequence numbers behind it.
"""

import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.errors import BrokerError
from tests.unit.log.workbench import Workbench, put_from

WRAP = 1 << 31


class Rules:
    """What a log must answer: offsets, or the name of an error."""

    def __init__(self):
        self.end_offset = 0
        self.producers = {}
        self.restored = set()

    def produce(self, producer_id, epoch, sequence, count):
        known_epoch, batches = self.producers.get(producer_id, (None, []))
        if known_epoch == epoch:
            for first, length, offset in batches:
                if (first, length) == (sequence, count):
                    return offset, offset + count, True
        if known_epoch is not None:
            if epoch < known_epoch:
                return "INVALID_PRODUCER_EPOCH"
            expected = 0
            if epoch == known_epoch:
                expected = (batches[-1][0] + batches[-1][1]) % WRAP
            if sequence != expected:
                behind = (expected - sequence) % WRAP
                if epoch == known_epoch and producer_id in self.restored and count <= behind < WRAP // 2:
                    return "DUPLICATE_SEQUENCE_NUMBER"
                return "OUT_OF_ORDER_SEQUENCE_NUMBER"
        if epoch != known_epoch:
            self.restored.discard(producer_id)
        batches = batches if epoch == known_epoch else []
        offset = self.end_offset
        self.end_offset += count
        self.producers[producer_id] = (epoch, [*batches, (sequence, count, offset)][-5:])
        return offset, offset + count, False

    def restart(self):
        """After a clean stop the last batch of each producer is known, which is what Kafka keeps in a snapshot."""
        self.producers = {key: (epoch, batches[-1:]) for key, (epoch, batches) in self.producers.items()}
        self.restored = set(self.producers)

    def crash(self):
        """After a crash nothing is forgotten: the last snapshot and the batches behind it say what was known."""


step = st.one_of(
    st.tuples(
        st.just("produce"),
        st.integers(1, 2),
        st.integers(0, 2),
        st.one_of(st.integers(0, 12), st.integers(WRAP - 6, WRAP - 1)),
        st.integers(1, 4),
    ),
    st.tuples(st.just("next"), st.integers(1, 2), st.integers(1, 4)),
    st.tuples(st.just("retry"), st.integers(1, 2), st.integers(1, 7)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash")),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(step, max_size=40))
def test_a_log_answers_as_the_rules_say(steps):
    with tempfile.TemporaryDirectory() as path:
        bench = Workbench(path)
        rules = Rules()
        sent = {1: [(0, 0, 1)], 2: [(0, WRAP - 3, 2)]}
        for kind, *arguments in steps:
            if kind in ("restart", "crash"):
                bench.restart(clean=kind == "restart")
                rules.restart() if kind == "restart" else rules.crash()
                continue
            producer_id = arguments[0]
            if kind == "produce":
                epoch, sequence, count = arguments[1:]
            elif kind == "next":
                epoch, sequence, length = sent[producer_id][-1]
                sequence, count = (sequence + length) % WRAP, arguments[1]
            else:
                epoch, sequence, count = sent[producer_id][-arguments[1] % len(sent[producer_id])]
            expected = rules.produce(producer_id, epoch, sequence, count)
            try:
                answer = put_from(bench.log, producer_id, sequence, *range(count), producer_epoch=epoch)
            except BrokerError as error:
                assert error.code.name == expected
            else:
                assert (answer.base_offset, answer.end_offset, answer.duplicate) == expected
                sent[producer_id].append((epoch, sequence, count))
            assert bench.log.end_offset == rules.end_offset
        bench.stop(clean=False)
