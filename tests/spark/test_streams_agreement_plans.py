"""Random plans on Spark, functions traced and functions called, beside the reference: `tests/agreement` draws them.

A run says the seed that draws the same plans again:

    AGREEMENT_SEED=123 python -m pytest tests/spark/test_streams_agreement_plans.py

What a query costs grows with its sources and its operators with state: on two cores some 0.35 s of processor time for
each source and micro-batch, some 2 s for each operator with state when the query starts, and little for all else. So
most programs of a query remember nothing and read one topic, and a few remember; those that remember are the
simulation's (`tests/agreement/test_plans.py`), where they cost milliseconds.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.client.record import Record
from tests.agreement.comparison import difference, execution_of, settled
from tests.agreement.on_spark import by_spark
from tests.agreement.program import Program
from tests.agreement.programs import drawn
from tests.agreement.sides import Row, by_reference
from tests.agreement.values import SEED

pytestmark = pytest.mark.timeout(900)

REPLAY = f"AGREEMENT_SEED={SEED} python -m pytest tests/spark/test_streams_agreement_plans.py"
Drawn = list[tuple[Program, list[Row]]]


def drawn_programs(number: int, count: int, stages_max: int, shared: Program, micro_batches: int) -> Drawn:
    """So many programs for a query, with so many stages together, and what the reference writes of each."""
    with_state = _gathered(number, max(1, count // 6), stages_max, shared, micro_batches, stateless=False)
    rest = _gathered(number, count - len(with_state), 0, shared, micro_batches, stateless=True)
    return [
        (
            program.renamed("PLAN-", f"p{n}-"),
            [row._replace(topic=row.topic.replace("PLAN-", f"p{n}-")) for row in rows if row.topic != "dead"],
        )
        for n, (program, rows) in enumerate([*with_state, *rest])
    ]


def _gathered(
    number: int, count: int, stages_max: int, shared: Program, micro_batches: int, *, stateless: bool
) -> Drawn:
    found: Drawn = []
    more = {"prefix": "PLAN-", "shared": shared, "micro_batches": micro_batches, "stateless": stateless}
    for n in itertools.count((number << 16) + SEED):
        program = drawn(n, **more)
        if program is None:
            continue
        stages = len(execution_of(program).flow.stages)
        if stages > stages_max or (stages == 0 and not stateless):
            continue
        made = settled(program)
        if made is not None and len(made[1]) > 3:
            found.append(made)
            stages_max -= stages
            if len(found) == count or (stages_max == 0 and not stateless):
                break
    return found


def check_query(
    directory: Path, number: int, *, called: bool, count: int, stages_max: int, partitions: int, restart: int,
    micro_batches: int, examples: Sequence[Program] = (),
) -> None:  # fmt: skip
    """Run some programs as one query, and compare each with the reference."""
    settings: tuple[tuple[str, str], ...] = (("dead_letters", "dead"),) if number % 2 else ()
    if number % 3 == 2:
        settings = (*settings, ("updates", "last"))
    shared = Program((), (), settings, partitions, (), restart)
    chosen = drawn_programs(number, count, stages_max, shared, micro_batches)
    assert len(chosen) == count
    for program in examples:
        program = replace(
            program.renamed("PLAN-", f"p{len(chosen)}-"), partitions=partitions, settings=settings
        )
        chosen.append((program, by_reference(program)))
    try:
        rows = by_spark([program for program, _ in chosen], directory / f"query-{number}", called=called)
    except Exception as error:
        guilty = _guilty(chosen, directory / f"alone-{number}", called)
        raise AssertionError(f"{REPLAY}\n{error}\n{guilty or 'and no program by itself fails'}") from error
    found = []
    for n, (program, wanted) in enumerate(chosen):
        own = [row for row in rows if row.topic.startswith(f"p{n}-")]
        differs = difference(program, wanted, own, "spark")
        if differs is not None:
            found.append(f"{differs}\n{program}")
    assert not found, f"{REPLAY}\n{len(found)} of {count} differ, and this first:\n{found[0]}"


def _guilty(chosen: Drawn, directory: Path, called: bool) -> Program | None:
    """A program on which Spark fails, where the reference does not."""
    for n, half in enumerate((chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :])):
        try:
            by_spark([program for program, _ in half], directory / str(n), called=called)
        except Exception:  # noqa: BLE001
            return half[0][0] if len(half) == 1 else _guilty(half, directory / f"{n}-in", called)
    return None


# `for_each` could not see some times of the year 1.
YEAR_1 = Program(
    (
        's0 = app.stream("PLAN-t", value=datetime.datetime)',
        's0.for_each(lambda k, v: None, name="PLAN-e")',
        's0.to("PLAN-o")',
    ),
    tuple(Record("PLAN-t", 0, n, n, b"k", f'"000{n}-01-01T00:00:00Z"'.encode()) for n in (1, 2)),
    cuts=(1,),
)


def test_plans_agree_where_functions_are_traced(spark: Any, tmp_path: Path) -> None:
    check_query(
        tmp_path,
        0,
        called=False,
        count=16,
        stages_max=2,
        partitions=2,
        restart=1,
        micro_batches=2,
        examples=[YEAR_1],
    )


def test_plans_agree_where_functions_are_called(spark: Any, tmp_path: Path) -> None:
    check_query(tmp_path, 1, called=True, count=16, stages_max=2, partitions=1, restart=0, micro_batches=2)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(2, 12))
def test_many_plans_agree(spark: Any, tmp_path: Path, number: int) -> None:
    for called in (False, True):
        check_query(
            tmp_path / str(called), number, called=called, count=20, stages_max=6, partitions=1 + number % 4,
            restart=number % 3, micro_batches=3,
        )  # fmt: skip
