"""How records flow through a topology: from origins, on paths without state, into stages and to ends.

    source ──► paths ──► stage 1 ──► paths ──► stage 2 ──► … ──► ends

W1  An origin is a source or a stage, which is an operator with state. Between them are only operators that remember
    nothing, so what comes of one record on its paths is known from that record alone.
W2  Stages stand in the order in which operators were said, each behind all that it reads. What is read by whom, and
    which ends there are, does not change it.
W3  Who reads an operator is asked in the order in which the readers were said, as in Kafka Streams.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ottla.streams.lowering.context import Context
from ottla.streams.lowering.lower import stages_of
from ottla.streams.lowering.stateful.stage import Stage
from ottla.streams.plan.aggregates import Regroup
from ottla.streams.plan.node import Node
from ottla.streams.plan.process import Process
from ottla.streams.plan.sinks import SINKS, To
from ottla.streams.plan.sources import GlobalTableSource, Source
from ottla.streams.plan.stateless import FlatMap, Map, SelectKey
from ottla.streams.plan.topology import Plan, upstream


@dataclass(frozen=True, eq=False)
class End:
    """Where records leave the topology: a sink, or an operator that nobody reads."""

    number: int
    node: Node

    @property
    def given(self) -> Node:
        """The operator whose records leave here."""
        return self.node.input if isinstance(self.node, SINKS) else self.node

    @property
    def group(self) -> str:
        """Where they go: ends of one group write to the same place, and those of "" to any topic."""
        if not isinstance(self.node, To):
            return "functions"
        return "" if self.node.topic is None else f"topic {self.node.topic}"


@dataclass(frozen=True, eq=False)
class StageInput:
    """One input of a stage. `number` is unique among all inputs of all stages, from 1 on."""

    number: int
    stage: Stage
    side: int

    @property
    def moves(self) -> bool:
        """Whether what comes in goes through a topic of Kafka Streams' own before. All of it does, or nothing: also
        what comes under its own key, where it was merged with what does not.
        """
        given = self.stage.inputs[self.side]
        return not isinstance(self.stage.node, Process) and _may_change_keys(given)


def _may_change_keys(node: Node) -> bool:
    """Whether a key may have changed since the last operator with state."""
    if isinstance(node, Process):
        return not node.values_only
    if isinstance(node, Map | FlatMap | SelectKey | Regroup):
        return True
    return not node.stateful and any(_may_change_keys(each) for each in node.inputs)


Reader: TypeAlias = Node | StageInput | End


class Flow:
    """The paths of a plan."""

    def __init__(self, plan: Plan, context: Context) -> None:
        ends: tuple[Node, ...] = plan.sinks or plan.loose_ends
        self.ends = tuple(End(n, each) for n, each in enumerate(ends))
        needed = {each for end in ends for each in upstream(end)}
        found = tuple(each for each in plan.nodes if each in needed)
        self.sources = tuple(
            each for each in found if isinstance(each, Source) and not isinstance(each, GlobalTableSource)
        )
        # What a checkpoint depends on.
        self.remembered = tuple(each for each in found if each.stateful or each in self.sources)
        # The one operator that is left to Spark's own aggregation is an origin, and no stage.
        self.native = next((each for each in found if each.stateful and context.native), None)
        made = {} if context.native else {each: stages_of(each, context) for each in found}
        self.stages = tuple(stage for each in made.values() for stage in each)
        self._stage_inputs = tuple(
            StageInput(n, stage, side)
            for n, (stage, side) in enumerate(
                ((stage, side) for stage in self.stages for side in range(len(stage.inputs))), 1
            )
        )
        self._owners = {stage: node for node, stages in made.items() for stage in stages}
        self._said = found
        self._readers: dict[Node, tuple[Reader, ...]] = {}

    def readers(self, node: Node) -> tuple[Reader, ...]:
        """Return who reads what flows out of a node."""
        if node not in self._readers:
            self._readers[node] = tuple(self._reading(node))
        return self._readers[node]

    def _reading(self, node: Node) -> Iterator[Reader]:
        yield from (end for end in self.ends if end.node is node)
        inputs = [each for each in self._stage_inputs if each.stage.inputs[each.side] is node]
        for each in self._said:
            yield from (one for one in inputs if self._owners[one.stage] is each)
            if each in self._owners.values() or each is self.native or node not in each.inputs:
                continue
            if isinstance(each, SINKS):
                yield from (end for end in self.ends if end.node is each)
            else:
                yield from (each for one in each.inputs if one is node)

    def inputs_of(self, stage: Stage) -> tuple[StageInput, ...]:
        """Return the inputs of a stage."""
        return tuple(each for each in self._stage_inputs if each.stage is stage)

    def entry(self, source: Source) -> Node:
        """Return as which node the records of a source flow in: those of a table come as a stream to its stage."""
        stage = next((each for each in self.stages if each.node is source), None)
        return source if stage is None else stage.inputs[0]

    def is_alone(self, source: Source) -> bool:
        """Whether nothing of a source comes into a stage."""
        return not self._has_stage_input(self.entry(source))

    def _has_stage_input(self, node: Node) -> bool:
        return any(
            isinstance(each, StageInput) or (isinstance(each, Node) and self._has_stage_input(each))
            for each in self.readers(node)
        )

    @property
    def origins(self) -> tuple[Node, ...]:
        """The sources that come into stages, and the stages."""
        entries = (self.entry(each) for each in self.sources if not self.is_alone(each))
        return (*entries, *(each.node for each in self.stages))

    def ends_of(self, origin: Node) -> tuple[End, ...]:
        """Return the ends that paths lead to from an origin without a stage between."""
        found: dict[End, None] = {}
        for each in self.readers(origin):
            if isinstance(each, End):
                found[each] = None
            elif isinstance(each, Node):
                found |= dict.fromkeys(self.ends_of(each))
        return tuple(found)

    @property
    def order(self) -> tuple[str, ...]:
        """The order in which Spark has sources and stages: it finds progress and state by it."""
        first = dict.fromkeys(upstream(self.native)) if self.native is not None else self.sources
        alone = [each for each in first if each in self.sources and self.is_alone(each)]
        sources = [each.name for each in dict.fromkeys([*alone, *self.sources])]
        return (*(f"source {name}" for name in sources), *(f"stage {each.node.name}" for each in self.stages))

    @property
    def is_straight(self) -> bool:
        """Whether no record passes a stage by on its way to an end: all of them come out of the last stage."""
        return not any(self.ends_of(each) for each in self.origins[:-1])

    @property
    def is_mixed(self) -> bool:
        """Whether records of several origins leave for one place."""
        groups: dict[str, set[Node]] = {}
        for origin in self.origins:
            for end in self.ends_of(origin):
                groups.setdefault(end.group, set()).add(origin)
        if "" in groups:
            return len(set().union(*groups.values())) > 1
        return any(len(each) > 1 for each in groups.values())
