"""Python source under construction: indented lines, fresh variables, and the objects its names stand for."""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, cast

from ottla.wire.field import Field


class Source:
    """The text of one function, `entry`, and the globals it will be compiled with."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = ""
        self._fresh = 0
        self._makers: dict[type[Any], tuple[type[Any]]] = {}

    def line(self, text: str) -> None:
        """Add one line at the current depth."""
        self._lines.append(self._indent + text)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Indent what is written inside."""
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outer

    def fresh(self, stem: str) -> str:
        """A variable nobody uses yet."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def bind(self, name: str, value: Any) -> str:
        """Make an object known to the function under this name, or under a longer one if that is taken."""
        while name in self.names and self.names[name] is not value:
            name += "_"
        self.names[name] = value
        return name

    def struct(self, codes: str, method: str) -> str:
        """The name of the `pack` or `unpack_from` of a big-endian layout."""
        name = f"{method}_{codes.replace('?', 'B1')}"
        if name not in self.names:
            self.names[name] = getattr(Struct(">" + codes), method)
        return name

    def new(self, cls: type[Any]) -> str:
        """Make an instance without its constructor. Given its argument as a tuple, the call builds none."""
        var = self.fresh("o")
        maker = self._makers.setdefault(cls, (cls,))
        self.line(f"{var} = new(*{self.bind(cls.__name__, maker)})")
        return var

    def default(self, field: Field) -> str:
        """An expression for what a field is when nobody sets it."""
        if not field.default_is_fresh:
            return repr(field.default)
        return "[]" if field.array else f"{self.bind('default_' + field.name, field.kind)}()"

    def reserve(self) -> int:
        """Keep a place for a line that is known only after the lines behind it."""
        self.line("")
        return len(self._lines) - 1

    def fill(self, place: int, text: str) -> None:
        """Write the line kept by `reserve`."""
        self._lines[place] = self._indent + text

    def text(self) -> str:
        """The whole source."""
        return "\n".join(self._lines) + "\n"

    def load(self, title: str) -> Callable[..., Any]:
        """Compile the source, and return its function. The title names it in tracebacks and profiles."""
        text = self.text()
        filename = f"<{title}>"
        # Tracebacks and profilers can then show the generated lines.
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.names)
        return cast(Callable[..., Any], self.names[self.entry])
