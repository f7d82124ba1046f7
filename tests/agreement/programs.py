"""Draws random programs: topics, operators, functions, records, and where micro-batches end.

A program is of one of two kinds. In order: each record is later than all before it, and operators may read whatever
they like. Late: records come late and at equal times, and an operator reads one queue (`flows.py` says why).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.control import BuildContext
from hypothesis.errors import StopTest, UnsatisfiedAssumption
from hypothesis.internal.conjecture.data import ConjectureData

from ottla.streams.errors import TopologyError
from tests.agreement.comparison import unordered
from tests.agreement.flows import Flow, may_meet, out_of
from tests.agreement.functions import Grammar
from tests.agreement.program import Program
from tests.agreement.record_bytes import KEYS, TIMED, VALUES, records_of

# Types that nobody needs to be told, where a function of them can be read.
READ = ("int", "str", "bool", "Part", "Point", "Made", "tuple[int, str]", "list[str]")
UPDATES_LAST = 25  # percent
OPERATORS_MAX = 9


@dataclass
class Topic:
    """A topic that is read."""

    name: str
    key: str
    value: str
    partitions: int
    is_global: bool = False
    timed: str = ""  # the expression of its records' time, where it is not the records' own


class Writer:
    """Writes a program, line by line."""

    def __init__(
        self,
        draw: Callable[[st.SearchStrategy[Any]], Any],
        prefix: str = "",
        partitions: int | None = None,
        stateless: bool = False,
    ) -> None:
        self._draw = draw
        self.prefix = prefix  # of all topics
        self.late = self.pick(False, True)
        self.partitions = partitions or self.pick(1, 2, 3, 4)
        self.has_state = not stateless
        self.lines: list[str] = []
        self.topics: list[Topic] = []
        self.flows: list[Flow] = []
        self.read: set[str] = set()
        # Few types, so that flows can be joined and merged.
        self.keys = [self.pick(*KEYS) for _ in range(self.pick(1, 1, 2))]
        self.values = [self.pick(*VALUES) for _ in range(self.pick(1, 2))]
        self.outputs: dict[str, list[Flow]] = {}
        self.operators: list[str] = []

    def pick(self, *given: Any) -> Any:
        return self._draw(st.sampled_from(given))

    def chance(self, percent: int) -> bool:
        return bool(self._draw(st.integers(0, 99)) < percent)

    def name(self) -> str:
        return f"s{len(self.lines)}"

    def say(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    # Topics

    def source(self) -> Flow:
        is_table = self.chance(35 if self.has_state else 10)
        key, value = self.pick(*self.keys), self.pick(*self.values)
        timed = ""
        if value in TIMED and self.chance(25):
            timed = self.pick(*TIMED[value])
        partitions = 1 if self.late else self.pick(1, 1, 2, 3)
        topic = Topic(f"{self.prefix}t{len(self.topics)}", key, value, partitions, timed=timed)
        self.topics.append(topic)
        given = f'"{topic.name}", key={key}, value={value}'
        if timed:
            given += (
                f", timestamp=lambda v: {timed}"
                if self.chance(50)
                else f", timestamp=lambda v: called({timed})"
            )
        name = self.say(f"app.{'table' if is_table else 'stream'}({given})")
        queues = {("topic", topic.name, n) for n in range(partitions)}
        if is_table:  # which may be remembered, by an operator of its own
            queues = {("operator", name, 0)} | (queues if partitions > 1 else set())
        return self.add(
            Flow(
                name, is_table, key, value, frozenset({topic.name}), frozenset(queues), is_ordered=not self.late,
                is_whole=True,
            )
        )  # fmt: skip

    def add(self, flow: Flow) -> Flow:
        self.flows.append(flow)
        return flow

    # Functions

    def scope(self, flow: Flow, *, with_key: bool = True) -> dict[str, str]:
        scope = {"v": flow.value}
        if with_key:
            scope |= {"k.key": flow.key, "k.window.start": "int"} if flow.windowed else {"k": flow.key}
        return scope

    def function(
        self, flow: Flow, type: str, write: Callable[[Grammar], str] | None = None
    ) -> tuple[str, str]:
        """A function of a flow's records, and what must be said of its type (with a comma), if anything."""
        with_key = self.chance(60)
        grammar = Grammar(self._draw, self.scope(flow, with_key=with_key))
        text = write(grammar) if write else grammar.of(type)
        names = "k, v" if with_key else "v"
        style = self.pick("plain", "plain", "called", "guarded")
        if style == "called":
            text = f"called({text})"
        elif style == "guarded":
            nothing = "None" if type != "bool" else "False"
            missing = " or ".join(f"{each} is None" for each in names.split(", "))
            text = f"{nothing} if {missing} else {text}"
        return f"lambda {names}: {text}", style

    def typed(self, flow: Flow, type: str, given: str = "value") -> str:
        text, style = self.function(flow, type)
        is_told = style != "plain" or self.chance(50) or type not in READ
        return f"{text}, {given}={type}" if is_told else text

    # Operators: each returns whether it could be said of the flow

    def stateless(self, flow: Flow, text: str, **changed: Any) -> bool:
        name = self.say(f"{flow.name}.{text}")
        self.read.add(flow.name)
        self.add(replace(flow, name=name, **changed))
        return True

    def filter(self, flow: Flow) -> bool:
        text, _ = self.function(flow, "bool")
        return self.stateless(flow, f"{self.pick('filter', 'filter_not')}({text})", is_whole=False)

    def filter_nulls(self, flow: Flow) -> bool:
        which = self.pick("v", "k", "v") if not flow.windowed else "v"
        return self.stateless(
            flow, f"filter(lambda k, v: {which} != None)", is_whole=False, nulls=flow.nulls - {which}
        )

    def map_values(self, flow: Flow) -> bool:
        value = self.pick(*self.values, *VALUES)
        return self.stateless(flow, f"map_values({self.typed(flow, value)})", value=value)

    def select_key(self, flow: Flow) -> bool:
        key = self.pick(*self.keys)
        moved = flow.moved()
        return self.stateless(
            moved, f"select_key({self.typed(flow, key, 'key')})", key=key, windowed="", nulls=frozenset("kv")
        )

    def map(self, flow: Flow) -> bool:
        key, value = self.pick(*self.keys), self.pick(*self.values)
        text, _ = self.function(flow, "pair", lambda grammar: f"({grammar.of(key)}, {grammar.of(value)})")
        text = text.replace("None if ", "(None, None) if ")
        return self.stateless(
            flow.moved(), f"map({text}, key={key}, value={value})", key=key, value=value, windowed="",
            nulls=frozenset("kv"),
        )  # fmt: skip

    def flat_map(self, flow: Flow) -> bool:
        key, value = self.pick(*self.keys), self.pick(*self.values)
        count = self.pick(0, 1, 2, 2, 3)
        text, _ = self.function(
            flow,
            "pairs",
            lambda grammar: (
                f"[{', '.join(f'({grammar.of(key)}, {grammar.of(value)})' for _ in range(count))}]"
            ),
        )
        text = text.replace("None if ", "[] if ")
        return self.stateless(
            flow.moved(), f"flat_map({text}, key={key}, value={value})", key=key, value=value, windowed="",
            is_whole=False, is_tied=True, nulls=frozenset("kv"),
        )  # fmt: skip

    def flat_map_values(self, flow: Flow) -> bool:
        value = self.pick(*self.values)
        count = self.pick(0, 1, 2, 3)
        text, _ = self.function(
            flow, "list", lambda grammar: f"[{', '.join(grammar.of(value) for _ in range(count))}]"
        )
        text = text.replace("None if ", "[] if ")
        return self.stateless(
            flow, f"flat_map_values({text}, value={value})", value=value, is_whole=False, is_tied=True
        )

    def split(self, flow: Flow) -> bool:
        ways = [self.function(flow, "bool")[0] for _ in range(self.pick(1, 2, 3))]
        self.read.add(flow.name)
        if self.chance(50):
            name = self.say(f"{flow.name}.branch({', '.join(ways)})")
            names = [f"{name}[{n}]" for n in range(len(ways))]
        else:
            said = ", ".join(f'"w{n}": {each}' for n, each in enumerate(ways))
            rest = ', default="rest"' if self.chance(60) else ""
            name = self.say(f"{flow.name}.split({{{said}}}{rest})")
            names = [f'{name}["w{n}"]' for n in range(len(ways))] + ([f'{name}["rest"]'] if rest else [])
        for each in names:
            self.add(replace(flow, name=each, is_whole=False))
        return True

    def merge(self, flow: Flow) -> bool:
        others = [
            each for each in self.flows
            if not each.is_table and (each.key, each.value, each.windowed) == (flow.key, flow.value, flow.windowed)
        ]  # fmt: skip
        other = self.pick(*others)
        self.read |= {flow.name, other.name}
        name = self.say(f"{flow.name}.merge({other.name})")
        again = bool(flow.roots & other.roots)
        self.add(
            replace(
                flow, name=name, roots=flow.roots | other.roots, queues=flow.queues | other.queues, is_whole=False,
                is_ordered=flow.is_ordered and other.is_ordered, is_tied=flow.is_tied or other.is_tied or again,
                is_spread=flow.is_spread or other.is_spread or (again and flow.queues != other.queues),
                has_moved=flow.has_moved or other.has_moved, moves=flow.moves or other.moves,
                nulls=flow.nulls | other.nulls,
            )
        )  # fmt: skip
        return True

    def peek(self, flow: Flow) -> bool:
        return self.stateless(flow, "peek(lambda k, v: called(v))")

    def repartition(self, flow: Flow) -> bool:
        return self.stateless(flow, f"repartition({self.pick('', '2')})")

    def stage(self, text: str, flows: list[Flow], **more: Any) -> bool:
        """Say an operator with state, if all sides take the same order."""
        if not may_meet(flows, self.partitions):
            return False
        self.read |= {each.name for each in flows}
        self.add(out_of(self.say(text), flows, self.partitions, **more))
        return True

    def distinct(self, flow: Flow) -> bool:
        span = self.pick("", "within=5", "within=0", "within=40")
        same = {"key": flow.key, "value": flow.value, "windowed": flow.windowed}
        return self.stage(
            f"{flow.name}.distinct({span})", [flow], is_table=False, multiplies=flow.is_tied, **same
        )

    def grouped(self, flow: Flow) -> tuple[str, Flow]:
        """What is said to group a stream, and what comes to the aggregate."""
        if self.chance(50) and not flow.windowed:
            return "group_by_key()", flow
        key = self.pick(*self.keys)
        return f"group_by({self.typed(flow, key, 'key')})", replace(flow.moved(), key=key, windowed="")

    def count(self, flow: Flow) -> bool:
        text, given = self.grouped(flow)
        window, more = self.window()
        return self.stage(
            f"{flow.name}.{text}{window}.count()", [given], key=given.key, value="int", is_table=True, **more
        )

    def reduce(self, flow: Flow) -> bool:
        text, given = self.grouped(flow)
        window, more = self.window()
        ways = ["v", "a", "a if shown(a) < shown(v) else v"]
        if not more:
            ways.append("None if shown(a) == shown(v) else v")
        if flow.value == "int":
            ways.append("(a * 31 + v) % 1000003")
        if flow.value == "str":
            ways.append("chained(a, v)")
        return self.stage(
            f"{flow.name}.{text}{window}.reduce(lambda a, v: {self.pick(*ways)})", [given], key=given.key,
            value=flow.value, is_table=True, **more,
        )  # fmt: skip

    def adder(self, with_none: bool) -> tuple[str, str, str, str]:
        """Initializer, adder, merger and type of an aggregate."""
        kinds = [
            ("str", "lambda k, v, a: chained(a, (k, v))", "lambda k, a, b: chained(a, b)", "str"),
            ("int", "lambda v, a: (a * 31 + len(shown(v))) % 1000003", "lambda a, b: (a * 17 + b) % 1000003", "int"),
            ("list", "lambda v, a: [*a, shown(v)][-3:]", "lambda k, a, b: [*a, *b][-3:]", "list[str]"),
            (
                "lambda: Made('', 0)", "lambda k, v, a: Made(chained(a.name, v), a.n + 1, a.total * 3, shown(k))",
                "lambda k, a, b: Made(a.name + b.name, a.n + b.n)", "Made",
            ),
        ]  # fmt: skip
        if with_none:
            kinds.append(("str", "lambda v, a: None if len(shown(v)) % 3 == 0 else chained(a, v)", "", "str"))
        found: tuple[str, str, str, str] = self.pick(*kinds)
        return found

    def aggregate(self, flow: Flow) -> bool:
        text, given = self.grouped(flow)
        window, more = self.window()
        first, add, merge, value = self.adder(with_none=not more)
        merger = f", {merge}" if more.get("windowed") == "session" else ""
        return self.stage(
            f"{flow.name}.{text}{window}.aggregate({first}, {add}{merger}, value={value})", [given], key=given.key,
            value=value, is_table=True, **more,
        )  # fmt: skip

    def cogroup(self, flow: Flow) -> bool:
        others = self.meeting(flow, [each for each in self.flows if not each.is_table])
        if flow.windowed or not others:
            return False
        other = self.pick(*others)
        window, more = self.window(may_close=False)
        first, add, merge, value = self.adder(with_none=not more)
        merger = f", {merge}" if more.get("windowed") == "session" else ""
        return self.stage(
            f"{flow.name}.group_by_key().cogroup({add}, value={value}).cogroup({other.name}.group_by_key(), {add})"
            f"{window}.aggregate({first}{merger})",
            [flow, other], key=flow.key, value=value, is_table=True, **more,
        )  # fmt: skip

    def window(self, *, may_close: bool = True) -> tuple[str, dict[str, Any]]:
        """What is said to window a stream, and what is known of the results."""
        kind = self.pick("", "", "tumbling", "hopping", "sliding", "session")
        if not kind:
            return "", {}
        grace = self.pick(0, 0, 3, 20)
        size = self.pick(10, 5, 40)
        said = {
            "tumbling": f"TumblingWindow({size}, grace={grace})",
            "hopping": f"HoppingWindow({size}, {self.pick(4, 5, 3)}, grace={grace})",
            "sliding": f"SlidingWindow({size}, grace={grace})",
            "session": f"SessionWindow({size}, grace={grace})",
        }[kind]
        close = may_close and self.chance(30)
        ending = ', emit="close"' if close else ""
        is_plain = kind in ("tumbling", "hopping") and not close
        more = {"windowed": kind, "is_ordered": is_plain, "multiplies": kind != "tumbling" or close}
        return f".windowed_by({said}{ending})", more

    def to_table(self, flow: Flow) -> bool:
        return self.stage(
            f"{flow.name}.to_table()",
            [flow],
            key=flow.key,
            value=flow.value,
            is_table=True,
            windowed=flow.windowed,
        )

    def meeting(self, flow: Flow, others: list[Flow]) -> list[Flow]:
        """Those of the same keys that an operator can read beside a flow."""
        return [
            each for each in others
            if (each.key, each.windowed) == (flow.key, flow.windowed) and may_meet([flow, each], self.partitions)
        ]  # fmt: skip

    def join(self, flow: Flow) -> bool:
        """A stream with a stream, a table or a global table."""
        if self.chance(15):
            return self.join_global(flow)
        others = self.meeting(flow, self.flows)
        if not others:
            return False
        other = self.pick(*others)
        if other.is_table:
            how = self.pick("join", "left_join")
            return self.stage(
                f"{flow.name}.{how}({other.name}, lambda k, l, r: paired(l, r), value=str)", [flow, other],
                key=flow.key, value="str", is_table=False, windowed=flow.windowed,
            )  # fmt: skip
        how = self.pick("join", "left_join", "outer_join")
        span = self.pick(
            "within(5)", "within(10, grace=7)", "JoinWindow(0, 12)", "JoinWindow(-2, 9, grace=3)"
        )
        return self.stage(
            f"{flow.name}.{how}({other.name}, lambda l, r: paired(l, r), within={span}, value=str)", [flow, other],
            key=flow.key, value="str", is_table=False, windowed=flow.windowed, is_ordered=how == "join",
            multiplies=True,
        )  # fmt: skip

    def join_global(self, flow: Flow) -> bool:
        key, value = self.pick(*self.keys), self.pick(*self.values)
        topic = Topic(f"{self.prefix}g{len(self.topics)}", key, value, 1, is_global=True)
        self.topics.append(topic)
        table = self.say(f'app.global_table("{topic.name}", key={key}, value={value})')
        text, _ = self.function(flow, key)
        how = self.pick("join", "left_join")
        return self.stateless(
            flow,
            f"{how}({table}, lambda l, r: paired(l, r), on={text}, value=str)",
            value="str",
            is_whole=False,
        )

    def process(self, flow: Flow) -> bool:
        if flow.windowed:
            return False
        key, value = flow.key, "int"
        kind = self.pick("Counting", "Telling", "Once", "Remembering", "Same")
        stores = ""
        if kind in ("Counting", "Telling", "Once"):
            ttl = self.pick("", ", ttl=8", ", ttl=60")
            stores = f', stores=[Store("seen", {key}, int{ttl})]'
        elif kind == "Remembering":
            value = "str"
            stores = f', stores=[WindowStore("near", {key}, str, retention={self.pick(9, 50)})]'
        elif kind == "Same":
            value = flow.value
        call = "process" if kind in ("Telling", "Once") else self.pick("process", "process_values")
        done = self.stage(
            f"{flow.name}.{call}({kind}{stores}, value={value})",
            [flow],
            key=key,
            value=value,
            is_table=False,
            multiplies=kind != "Counting",
        )
        if done and call == "process":  # which might have changed the key
            self.flows[-1] = replace(self.flows[-1], moves=True)
        return done

    # Tables

    def table_group(self, flow: Flow) -> bool:
        key, value = self.pick(*self.keys), self.pick(*self.values)
        text, style = self.function(flow, "pair", lambda grammar: f"({grammar.of(key)}, {grammar.of(value)})")
        if style == "guarded":
            text = text.replace("None if ", "(None, None) if ")
        how = self.pick("count", "reduce", "aggregate")
        said, result = "count()", "int"
        if how == "reduce":
            said, result = (
                f"reduce(lambda a, v: {self.pick('v', 'a')}, lambda a, v: {self.pick('a', 'None', 'v')})",
                value,
            )
        elif how == "aggregate":
            said, result = (
                'aggregate(str, lambda k, v, a: chained(a, v), lambda v, a: chained(a + "-", v), value=str)', "str"
            )  # fmt: skip
        given = replace(flow.moved(), key=key, value=value, windowed="", is_tied=True)
        if not may_meet([flow], self.partitions):
            return False
        return self.stage(
            f"{flow.name}.group_by({text}, key={key}, value={value}).{said}", [given], key=key, value=result,
            is_table=True, multiplies=True,
        )  # fmt: skip

    def to_stream(self, flow: Flow) -> bool:
        if self.chance(30):
            key = self.pick(*self.keys)
            return self.stateless(
                flow.moved(),
                f"to_stream({self.typed(flow, key, 'key')})",
                is_table=False,
                key=key,
                windowed="",
            )
        return self.stateless(flow, "to_stream()", is_table=False)

    def table_join(self, flow: Flow) -> bool:
        tables = [each for each in self.flows if each.is_table and not each.windowed]
        if self.chance(25) and not flow.windowed:
            other = self.pick(*tables)
            if other.name == flow.name or (self.late or flow.roots & other.roots):
                return False
            if not may_meet([flow.moved(), other], self.partitions) or not may_meet([flow], self.partitions):
                return False
            text, _ = self.function(flow, other.key)
            how = self.pick("join", "left_join")
            return self.stage(
                f"{flow.name}.{how}({other.name}, lambda l, r: paired(l, r), on={text}, value=str)",
                [flow.moved(), other], key=flow.key, value="str", is_table=True, multiplies=True,
            )  # fmt: skip
        others = [
            each
            for each in self.flows
            if each.is_table and (each.key, each.windowed) == (flow.key, flow.windowed)
        ]
        other = self.pick(*others)
        how = self.pick("join", "left_join", "outer_join")
        return self.stage(
            f"{flow.name}.{how}({other.name}, lambda l, r: paired(l, r), value=str)", [flow, other], key=flow.key,
            value="str", is_table=True, windowed=flow.windowed,
        )  # fmt: skip

    def suppress(self, flow: Flow) -> bool:
        if flow.windowed and flow.windowed != "none" and self.chance(70):
            until = "WindowClose()"
        else:
            until = f"TimeLimit({self.pick(0, 6, 30)}{self.pick('', ', records_max=1', ', records_max=2')})"
        return self.stage(
            f"{flow.name}.suppress({until})", [flow], key=flow.key, value=flow.value, is_table=True,
            windowed=flow.windowed, is_ordered=False, multiplies=True,
        )  # fmt: skip

    # Ends

    def end(self, flow: Flow) -> None:
        self.read.add(flow.name)
        way = self.pick("to", "to", "to", "shared", "extractor", "for_each")
        if way == "for_each" and not flow.is_table:
            name = f"{self.prefix}e{len(self.lines)}"
            self.lines.append(f'{flow.name}.for_each(lambda k, v: None, name="{name}")')
            self.outputs.setdefault(name, []).append(flow)
            return
        if way == "extractor":
            text, _ = self.function(flow, "str")
            stem = f"{self.prefix}x{len(self.lines)}-"
            text = text.replace(": ", f': "{stem}" + str(len((', 1) + ")) % 3)"
            self.lines.append(f"{flow.name}.to({text})")
            for n in range(3):
                self.outputs.setdefault(f"{stem}{n}", []).append(flow)
            return
        topic = self.prefix + ("shared" if way == "shared" else f"o{len(self.outputs)}")
        self.lines.append(f'{flow.name}.to("{topic}")')
        self.outputs.setdefault(topic, []).append(flow)

    def write(self) -> None:
        """Say topics, operators and ends."""
        for _ in range(self.pick(1, 2, 2, 3) if self.has_state else self.pick(1, 1, 1, 2)):
            self.source()
        of_streams = [
            self.filter, self.filter_nulls, self.map_values, self.select_key, self.map, self.flat_map,
            self.flat_map_values, self.split, self.merge, self.peek, self.repartition,
        ]  # fmt: skip
        of_tables = [self.map_values, self.to_stream]
        if not self.has_state:
            # Those that are read as expressions more often.
            of_streams += [
                self.filter,
                self.map_values,
                self.map_values,
                self.map,
                self.split,
                self.join_global,
            ]
        else:
            of_streams += [
                self.distinct, self.count, self.count, self.reduce, self.aggregate, self.aggregate, self.cogroup,
                self.to_table, self.join, self.join, self.process, self.process,
            ]  # fmt: skip
            of_tables += [
                self.filter, self.table_group, self.table_group, self.to_stream, self.table_join, self.table_join,
                self.suppress,
            ]  # fmt: skip
        for _ in range(self._draw(st.integers(1, OPERATORS_MAX))):
            # The last ones more often, so that operators follow one another.
            flow = self.pick(*self.flows, *self.flows[-2:], *self.flows[-2:])
            operator = self.pick(*(of_tables if flow.is_table else of_streams))
            if operator(flow):
                self.operators.append(operator.__name__)
        for flow in self.flows:
            if flow.name not in self.read or self.chance(15):
                self.end(flow)


@st.composite
def programs(
    draw: Any,
    prefix: str = "",
    shared: Program | None = None,
    micro_batches: int | None = None,
    stateless: bool = False,
) -> Program:
    """A program with its records. With `shared` it has settings, partitions and restart of that one."""
    writer = Writer(draw, prefix, shared.partitions if shared else None, stateless)
    writer.write()
    settings: list[tuple[str, Any]] = []
    if shared is not None:
        settings = list(shared.settings)
    elif writer.chance(25):
        settings.append(("dead_letters", "dead"))
    if shared is None and writer.chance(UPDATES_LAST):
        settings.append(("updates", "last"))
    records = records_of(draw, writer, with_unreadable="dead_letters" in dict(settings))
    places = st.integers(1, max(len(records) - 1, 1))
    if micro_batches is None:
        cuts = tuple(sorted(draw(st.sets(places, max_size=5))))
    else:
        cuts = tuple(sorted(draw(st.lists(places, min_size=micro_batches - 1, max_size=micro_batches - 1))))
    restart = shared.restart if shared is not None else draw(st.integers(0, len(cuts)))
    program = Program(tuple(writer.lines), tuple(records), tuple(settings), writer.partitions, cuts, restart)
    try:
        weak = unordered(
            program, writer.outputs, {each.name: each.partitions for each in writer.topics}, writer.late
        )
    except TopologyError as error:
        # Nobody can look into it, and the type was left out.
        if "nothing says what the function" in str(error):
            reject()
        raise AssertionError(f"{error}\n{program}") from error
    return replace(program, unordered=weak)


def drawn(seed: int, **more: Any) -> Program | None:
    """The program of a seed; None where what was drawn cannot be said.

    Each is drawn anew. `@given` would make most of its examples by changing a few choices of the one before.
    """
    data = ConjectureData(random=Random(seed))
    try:
        with BuildContext(data, is_final=False, wrapped_test=drawn):
            found: Program = data.draw(programs(**more))
    except (StopTest, UnsatisfiedAssumption):
        return None
    return found
