"""What is compared: for each topic and key the rows, in their order, and where no order is promised, sorted."""

import re
from collections.abc import Sequence

from ottla.streams.errors import FunctionFailed
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.execution import Execution
from ottla.streams.lowering.flow import End
from ottla.streams.plan.old_values import wants_old
from tests.agreement.flows import Flow
from tests.agreement.program import Program
from tests.agreement.sides import Row, by_reference
from tests.agreement.values import same_json

POISON_MAX = 12
Sequences = dict[tuple[str, bytes | None], list[Row]]


def sequences(rows: Sequence[Row], program: Program) -> Sequences:
    """The rows of each topic and key."""
    found: Sequences = {}
    for row in rows:
        found.setdefault((row.topic, row.key), []).append(row)
    for (topic, key), own in found.items():
        # Records without a key are spread over partitions.
        if topic in program.unordered or (key in (None, "None") and program.partitions > 1):
            own.sort(key=repr)
    return found


def difference(program: Program, wanted: Sequence[Row], got: Sequence[Row], side: str) -> str | None:
    """The first difference, in words."""
    one, other = sequences(wanted, program), sequences(got, program)
    for name in [*one, *(each for each in other if each not in one)]:
        there, here = one.get(name, []), other.get(name, [])
        for n in range(max(len(there), len(here))):
            if not _are_same(there[n : n + 1], here[n : n + 1]):
                return (
                    f"topic {name[0]}, key {name[1]!r}, row {n} of {len(there)} and {len(here)}:\n"
                    f"  reference  {_shown(there[n : n + 3])}\n  {side:10} {_shown(here[n : n + 3])}"
                )
    return None


def _are_same(one: Sequence[Row], other: Sequence[Row]) -> bool:
    if one == other or not (one and other):
        return one == other
    (first,), (second,) = one, other
    return first._replace(value=None) == second._replace(value=None) and same_json(second.value, first.value)


def _shown(rows: Sequence[Row]) -> str:
    return "  ".join(f"{row.value!r}@{row.timestamp}{row.headers or ''}" for row in rows) or "nothing"


def settled(program: Program) -> tuple[Program, list[Row]] | None:
    """The program without the records on which its functions fail, and what the reference writes; None where it fails
    all the same.
    """
    for _ in range(POISON_MAX):
        try:
            return program, by_reference(program)
        except FunctionFailed as failed:
            if not failed.record:
                return None
            place, offset = failed.record.rsplit("@", 1)
            topic, partition = place.rsplit("-", 1)
            program = program.without(topic, int(partition), int(offset))
    return None


def unordered(
    program: Program, outputs: dict[str, list[Flow]], partitions: dict[str, int], late: bool
) -> frozenset[str]:
    """The topics in which nobody promises an order to rows of one key.

    Rows of one key are in order as far as they come of one partition of one topic; and where they come of several, if
    all passed the operators with state (only those are sorted by their lineages), in the order of time, and under keys
    that did not change before. With updates="last" the reference gives what each operator makes of a micro-batch before
    what the next makes.
    """
    letters, execution = dict(program.settings).get("dead_letters"), execution_of(program)
    flow = execution.flow
    found = set()
    if letters and len(flow.sources) > 1:
        found.add(letters)
    origins: dict[End, list[object]] = {end: [] for end in flow.ends}
    for origin in (*flow.origins, *(flow.entry(each) for each in flow.sources if flow.is_alone(each))):
        for end in flow.ends_of(origin):
            origins[end].append(origin)
    alone = {flow.entry(each) for each in flow.sources if flow.is_alone(each)}
    for topic, flows in outputs.items():
        own = {
            origin
            for end, some in origins.items()
            if topic in (end.node.name, getattr(end.node, "topic", None))
            or (getattr(end.node, "topic", "") is None and re.search(r"x[0-9]+-[0-9]$", topic))
            for origin in some
        }
        queues = sum(partitions[root] for root in frozenset().union(*(each.roots for each in flows)))
        last = flow.stages[-1].node if flow.stages else None
        is_mixed = len(own) > 1
        strays = program.partitions > 1 and any(
            each.moves and not each.queues.isdisjoint(_operators(each)) for each in flows
        )
        if own & alone:
            weak = is_mixed or queues > 1
        elif not execution.has_lineage:
            weak = strays
        elif is_mixed:
            weak = (late and queues > 1) or any(each.has_moved or each.moves for each in flows)
        else:
            weak = (late and queues > 1) or (own == {last} and strays)
        if weak or (program.updates == "last" and is_mixed):
            found.add(topic)
    return frozenset(found)


def _operators(flow: Flow) -> frozenset[tuple[str, str, int]]:
    return frozenset(each for each in flow.queues if each[0] == "operator")


def execution_of(program: Program) -> Execution:
    """The program as it is lowered, without a Spark."""
    plan, nothing = program.app().plan(), None
    letters = dict(program.settings).get("dead_letters")
    context = Context(
        nothing, "plan", nothing, program.partitions, program.updates, given={}, wants_old=wants_old(plan),
        dead_letters=letters,
    )  # fmt: skip
    return Execution(plan, context)
