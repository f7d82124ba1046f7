"""Python source under construction: indented lines, fresh variables, and the objects its names stand for."""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any


class Source:
    """The text of one function, `entry`, and the globals it will be compiled with."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = ""
        self._fresh = 0

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

    def text(self) -> str:
        """The whole source."""
        return "\n".join(self._lines) + "\n"
