"""Random functions, as texts: of what can be read as an expression, and of what must be called.

A scope says what a function is given: names, and the types of what they stand for, as they are written in Python.

    Grammar(draw, {"k": "str", "v": "Value"}).result()       "Made(v.s, (v.i + 1), v.f, None)"
"""

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from tests.agreement.values import TEXTS, WHOLE

# By type and kind of expression: what can be said of something of that type, which stands in the place of {0}.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "str": {"text": ("{0}",), "whole": ("len({0})",)},
    "int": {"whole": ("{0}",)},
    "float": {"real": ("{0}",), "truth": ("{0} {same} {real}",)},
    "bool": {"truth": ("{0}",)},
    "bytes": {"whole": ("len({0})",), "truth": ("{0} {order} b'a\\xff'",)},
    "Decimal": {"truth": ("{0} {order} BIG", "{0} {order} {few}")},
    "date": {"truth": ("{0} {order} DAY",)},
    "Status": {"truth": ("{0} {same} Status.PAID",)},
    "Part": {"whole": ("{0}.n",), "text": ("{0}.sku",)},
    "Point": {"whole": ("{0}.x", "{0}.y")},
    "Made": {"whole": ("{0}.n",), "text": ("{0}.name",), "real": ("{0}.total",), "truth": ("{0}.note {same} None",)},
    "tuple[int, str]": {"whole": ("{0}[0]",), "text": ("{0}[1]",)},
    "list[str]": {"whole": ("len({0})",)},
    "list[int]": {"whole": ("len({0})",)},
    "Value": {
        "whole": (
            "{0}.i", "{0}.j", "{0}.part.n", "{0}.pair[0]", "{0}.point.x", "{0}.more", "len({0}.s)", "len({0}.names)",
            "len({0}.raw)",
        ),
        "real": ("{0}.f", "{0}.g"),
        "text": ("{0}.s", "{0}.t", "{0}.part.sku", "{0}.pair[1]", "{0}.text"),
        "truth": (
            "{0}.b", "{0}.c", "{0}.flag", "{0}.note {same} None", "{0}.maybe {same} {whole}", "{0} {same} None",
            "{0}.real {same} {real}", "{0}.real {same} {0}.maybe", "{0}.flag {same} {0}.b",
            "{0}.status {same} Status.PAID", "{0}.level {same} Level.LOW",
            "{0}.note {same} {0}.s", "{0}.at {order} {0}.until", "{0}.at {order} OLD",
            "{0}.day {order} DAY", "{0}.raw {order} b'a\\xff'", "{0}.d {order} {0}.e", "{0}.d {order} BIG",
            "{0}.d {order} {few}",
        ),
    },
}  # fmt: skip
# What has a field of a type, and how something of a type is written.
FIELDS = {
    ("Value", "Part"): ("part",),
    ("Value", "Point"): ("point",),
    ("Value", "Decimal"): ("d", "e"),
    ("Value", "bytes"): ("raw",),
    ("Value", "Status"): ("status",),
    ("Value", "date"): ("day",),
    ("Value", "list[str]"): ("names",),
    ("Value", "dict[str, int]"): ("tags",),
    ("Value", "tuple[int, str]"): ("pair",),
}
SAMPLES = {
    "Decimal": "BIG",
    "bytes": "b'x'",
    "Status": "Status.NEW",
    "date": "DAY",
    "dict[str, int]": "{'a': 1}",
    "Any": "called([1, None])",
    "Value": "SAMPLE",
}
# Of a type, what is written as text more often than anything else.
AS_TEXT = {"Value": ("note", "maybe", "d", "status", "names")}
CONSTANTS = (*map(str, WHOLE), "2654435761", "2**64", "-2**63-1", "10**30")


class Grammar:
    """Draws the text of functions that can be read, or nearly."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], scope: Mapping[str, str]) -> None:
        self._draw = draw
        self.scope = scope
        self._leaves: dict[str, list[str]] = {}
        for name, type in scope.items():
            for kind, forms in PARTS.get(type, {}).items():
                self._leaves.setdefault(kind, []).extend(form.replace("{0}", name) for form in forms)

    def pick(self, *given: Any) -> Any:
        return self._draw(st.sampled_from(given))

    def leaf(self, kind: str) -> str | None:
        """Something that there is in the scope, None where nothing is of the kind."""
        leaves = self._leaves.get(kind)
        return str(self.pick(*leaves)) if leaves else None

    def whole(self, depth: int) -> str:
        if depth <= 0:
            constant = str(self.pick(*CONSTANTS))
            return (self.leaf("whole") or constant) if self.pick(True, True, False) else constant
        kind = self.pick("+", "-", "*", "//", "%", "neg", "abs", "leaf", "leaf")
        if kind in ("+", "-", "*"):
            return f"({self.whole(depth - 1)} {kind} {self.whole(depth - 1)})"
        if kind in ("//", "%"):
            by = self.pick(
                "2", "3", "-3", "100", "-1", "1", "4294967296", "9223372036854775807", "-9223372036854775808"
            )
            return f"({self.whole(depth - 1)} {kind} ({by}))"
        if kind == "leaf":
            return self.whole(0)
        return f"(-{self.whole(depth - 1)})" if kind == "neg" else f"abs({self.whole(depth - 1)})"

    def real(self, depth: int) -> str:
        if depth <= 0:
            constant = str(self.pick("0.1", "-0.0", "INF", "NAN", "1e300", "9007199254740992.0", "2.0**63"))
            return (self.leaf("real") or constant) if self.pick(True, False) else constant
        kind = self.pick("+", "-", "*", "/", "int/", "mixed", "float", "neg", "abs", "leaf")
        if kind in ("+", "-", "*"):
            return f"({self.real(depth - 1)} {kind} {self.real(depth - 1)})"
        if kind == "/":
            return f"({self.real(depth - 1)} / {self.pick('3', '-2.0', '0.1', 'INF', '2**60')})"
        if kind == "int/":
            by = self.pick("2", "100", "3", "-7", "1000000", "2**40", "0.5", "999983")
            return f"({self.whole(depth - 1)} / {by})"
        if kind == "mixed":
            return f"({self.whole(depth - 1)} {self.pick('+', '-', '*')} {self.real(depth - 1)})"
        if kind == "float":
            return f"float({self.whole(depth - 1)})"
        if kind == "leaf":
            return self.real(0)
        return f"(-{self.real(depth - 1)})" if kind == "neg" else f"abs({self.real(depth - 1)})"

    def text(self, depth: int) -> str:
        if depth <= 0:
            constant = repr(self.pick(*TEXTS))
            return (self.leaf("text") or constant) if self.pick(True, True, True, False) else constant
        kind = self.pick(
            "+", "lower", "upper", "strip", "lstrip", "rstrip", "slice", "replace", "str", "str", "leaf"
        )
        if kind == "+":
            return f"({self.text(depth - 1)} + {self.text(depth - 1)})"
        if kind == "slice":
            start, stop = self.pick("", "0", "1", "2", "2**40"), self.pick("", "0", "1", "3", "2**70")
            return f"{self.text(depth - 1)}[{start}:{stop}]"
        if kind == "replace":
            old = self.pick("a", "$", ".", "Σ", "\\", "ab", " ")
            return f"{self.text(depth - 1)}.replace({old!r}, {self.text(0)})"
        if kind == "str":
            return self.as_text(depth - 1)
        return self.text(0) if kind == "leaf" else f"{self.text(depth - 1)}.{kind}()"

    def as_text(self, depth: int) -> str:
        """Text of anything: nearly always by str(), which is an expression for some types."""
        write = self.pick(self.whole, self.whole, self.text, self.text, self.real, self.truth)
        fields = (f"{name}.{each}" for name, type in self.scope.items() for each in AS_TEXT.get(type, ()))
        given = str(self.pick(write(depth), *self.scope, *fields))
        how = self.pick("str({})", "str({})", "str({})", "str({})", "f'{{{}}}'", "repr({})", "'%s' % ({},)")
        return str(how.format(given)) if "'" not in given else f"str({given})"

    def truth(self, depth: int) -> str:
        order = self.pick("<", "<=", ">", ">=", "==", "!=")
        if depth <= 0:
            found = self.leaf("truth")
            return f"{self.whole(0)} {order} {self.whole(0)}" if found is None else self._filled(found, order)
        kind = self.pick("whole", "real", "mixed", "text", "starts", "ends", "&", "|", "leaf")
        if kind in ("&", "|"):
            return f"(({self.truth(depth - 1)}) {kind} ({self.truth(depth - 1)}))"
        if kind in ("starts", "ends"):
            return f"{self.text(depth - 1)}.{kind}with({self.text(0)})"
        if kind == "leaf":
            return self.truth(0)
        one, two = {
            "whole": (self.whole, self.whole),
            "real": (self.real, self.real),
            "mixed": (self.whole, self.real),
            "text": (self.text, self.text),
        }[kind]
        sides = (one(depth - 1), two(depth - 1))
        left, right = reversed(sides) if self.pick(True, False) else sides
        return f"({left} {order} {right})"

    def _filled(self, form: str, order: str) -> str:
        for name, made in (
            ("{order}", lambda: order),
            ("{same}", lambda: self.pick("==", "!=")),
            ("{whole}", lambda: self.whole(1)),
            ("{real}", lambda: self.real(1)),
            ("{few}", lambda: self.pick("1", "0", "10**19")),
        ):
            if name in form:
                form = form.replace(name, str(made()))
        return form

    def of(self, type: str) -> str:
        """An expression of a type."""
        return str(self.pick(*self._ways(type))())

    def _ways(self, type: str) -> list[Callable[[], str]]:
        own = [lambda name=name: name for name, each in self.scope.items() if each == type]
        makers = {
            "int": lambda: self.whole(2),
            "float": lambda: self.real(2),
            "str": lambda: self.text(2),
            "bool": lambda: self.truth(1),
            "Part": lambda: f"Part({self.text(1)}, {self.whole(1)})",
            "Point": lambda: f"Point({self.whole(1)}, {self.whole(0)})",
            "Made": lambda: f"Made({self.text(1)}, {self.whole(1)}, {self.real(1)}, {self.text(0)})",
            "tuple[int, str]": lambda: f"({self.whole(1)}, {self.text(1)})",
            "list[str]": lambda: f"[{self.text(1)}, {self.text(0)}]",
            "list[int]": lambda: f"[{self.whole(1)}]",
        }
        inside = [
            f"{name}.{field}" for name, each in self.scope.items() for field in FIELDS.get((each, type), ())
        ]
        parts = [lambda text=text: text for text in inside]
        made = [makers[type]] if type in makers else []
        return [*made, *own, *parts, *made] or [lambda: SAMPLES[type]]

    def result(self) -> str:
        kind = self.pick(
            "whole", "whole", "real", "text", "truth", "truth", "made", "pair", "list", "split", "part"
        )
        if kind == "made":
            note = self.pick("v.note", self.text(1), "None")
            return f"Made({self.text(1)}, {self.whole(2)}, {self.pick(self.real(2), self.whole(1))}, {note})"
        if kind == "pair":
            return f"({self.text(1)}, {self.whole(1)})"
        if kind == "list":
            return f"[{self.text(1)}, {self.text(1)}]"
        if kind == "split":
            return f"{self.text(1)}.split({self.pick('', repr(','), repr('|'), repr('ab'), repr(chr(92) + 'E'))})"
        if kind == "part":
            names = (
                "names",
                "tags",
                "note",
                "maybe",
                "real",
                "parts",
                "point",
                "d",
                "at",
                "day",
                "raw",
                "status",
                "level",
            )
            return str(self.pick("v", "k", "(k, v.part)", *(f"v.{each}" for each in names)))
        write = {"whole": self.whole, "real": self.real, "text": self.text, "truth": self.truth}[kind]
        return write(self.pick(1, 2, 3))
