"""Random plans: the reference beside the lowered operators in a simulated Spark, cut, divided and begun anew at random.

A run says the seed that draws the same plans again:

    AGREEMENT_SEED=123 python -m pytest tests/agreement/test_plans.py

For each topic and key the rows must be equal in their order: key, value, timestamp and headers, as bytes. Where less is
promised, less is compared, and just there:

- An operator with several queues takes the same order as the reference only as `flows.py` says. Anything else is not
  generated: what is late there depends on micro-batches, by documented design.
- Rows of several sources in one topic, none of which met an operator with state, are in no order among each other; nor
  are rows that took another key on their way, where they meet others of the same record; nor those whose key changed
  behind the last operator with state, where there are several partitions (`comparison.unordered`). They are compared
  sorted. So are rows without a key in several partitions; and with updates="last" rows that several operators with
  state, or one of them and what passes by it, write to one topic: the reference lets each make all of a micro-batch
  before the next begins (docs/guide/streams.md).
- Stream time is that of each operator partition, so the reference gets as many of each operator (`sides.InPartitions`).
- `through` is no operator here: what a program writes and reads again comes in a round of its own.
- Timers by the wall, `print`, patterns of topics, `native=True` and choosers of partitions are tested elsewhere.

A record on which a function fails in the reference is taken out, once it was seen that the simulation fails, too.
"""

import itertools

import pytest

from ottla.client.record import Record
from ottla.streams.errors import FunctionFailed
from tests.agreement.comparison import difference, settled
from tests.agreement.program import Program
from tests.agreement.programs import drawn
from tests.agreement.shrinking import smaller
from tests.agreement.sides import by_simulation
from tests.agreement.values import SEED


def differs(program: Program, chance: int = 0) -> str | None:
    """In what the simulation writes something else than the reference; None also where the reference fails."""
    found = settled(program)
    if found is None:
        return None
    mended, wanted = found
    if mended is not program:
        try:
            by_simulation(program, chance)
        except FunctionFailed:
            pass
        else:
            return f"a function fails in the reference, and nowhere else\n{program}"
    said = difference(mended, wanted, by_simulation(mended, chance), "simulated")
    return said and f"{said}\n{mended}"


def check_plans(count: int) -> None:
    """So many programs that can be said, of seeds from SEED on. A run with a program's own seed begins with it."""
    numbers = itertools.count(SEED)
    for _ in range(count):
        while not _has_agreed(next(numbers)):
            pass


def _has_agreed(number: int) -> bool:
    """Whether there is a program of that seed; it is an error if its sides differ."""
    program, chance = drawn(number), number % 100
    if program is not None and differs(program, chance) is not None:
        program = smaller(program, lambda less: differs(less, chance) is not None)
        replay = f"AGREEMENT_SEED={number} python -m pytest tests/agreement/test_plans.py"
        raise AssertionError(f"{replay}\n{differs(program, chance)}")
    return program is not None


def test_plans_agree() -> None:
    check_plans(150)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_plans_agree() -> None:
    check_plans(2000)


def example(
    *lines: str, records: list[tuple[str, bytes | None, bytes | None, int]], **more: object
) -> Program:
    """A program of which each topic has one partition; each record has a header."""
    offsets: dict[str, int] = {}
    made = []
    for topic, key, value, time in records:
        offsets[topic] = offsets.get(topic, -1) + 1
        made.append(Record(topic, 0, offsets[topic], time, key, value, (("h", b"1"),)))
    return Program(lines, tuple(made), **more)  # type: ignore[arg-type]


REAL = b"\x3f\xf0\0\0\0\0\0\0"

FOUND = {
    "session windows lost the headers of records": example(
        's0 = app.stream("t", value=bytes)',
        's0.group_by_key().windowed_by(SessionWindow(10, grace=5)).count().to("o")',
        records=[("t", b"a", b"1", 3), ("t", b"a", b"2", 3), ("t", b"a", b"3", 9), ("t", b"b", b"4", 30)],
        cuts=(1, 3),
    ),
    "a table that nobody remembers kept records without a key where there were dead letters": example(
        's0 = app.table("t", value=bytes)',
        's0.to("o")',
        records=[("t", b"a", b"1", 3), ("t", None, b"2", 4), ("t", b"a", None, 5)],
        settings=(("dead_letters", "dead"),),
    ),
    "a function of the program for floats could not be sent to Spark": example(
        's0 = app.stream("t", key=float, value=bytes)',
        "s0.for_each(lambda k, v: None)",
        's0.to("o")',
        records=[("t", REAL, b"1", 3), ("t", REAL, b"2", 4)],
    ),
    "nor could windows of keys that are floats": example(
        's0 = app.stream("t", key=float, value=bytes)',
        's0.group_by_key().windowed_by(TumblingWindow(10)).count().to("o")',
        's0.join(app.stream("u", key=float), lambda l, r: paired(l, r), value=str, within=within(5)).to("p")',
        records=[("t", REAL, b"1", 3), ("u", REAL, b"1", 4), ("t", REAL, b"2", 5)],
        partitions=3,
    ),
    "counts of one key were written in another order than counted after a merge with other keys": example(
        's0 = app.stream("t", value=bytes)',
        's0.select_key(lambda k, v: k, key=str).merge(s0).group_by_key().count().to("o")',
        's0.to("p")',
        's0.distinct().to("q")',
        records=[("t", b"a", b"1", 3), ("t", b"a", b"2", 4), ("t", b"b", b"3", 5)],
        partitions=2,
        cuts=(1,),
    ),
    "with one change a key and micro-batch the reference took what was split and merged out of order": example(
        's0 = app.stream("t", value=bytes)',
        's1 = s0.split({"w": lambda v: v == b"1"}, default="rest")',
        's2 = s1["rest"].merge(s1["w"], s0)',
        's2.to("o")',
        's2.to_table().to("p")',
        's2.group_by_key().aggregate(str, lambda v, a: chained(a, v), value=str).to("q")',
        records=[("t", b"a", b"1", 3), ("t", b"a", b"2", 9), ("t", b"b", b"1", 10), ("t", b"a", b"1", 4)],
        settings=(("updates", "last"),),
        cuts=(3,),
    ),
}


@pytest.mark.parametrize("program", FOUND.values(), ids=[each.replace(" ", "-") for each in FOUND])
def test_what_once_differed(program: Program) -> None:
    said = differs(program)
    assert said is None, said
