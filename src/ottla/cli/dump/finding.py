"""What is found in a file: entries, and what is wrong with them."""

from collections.abc import Generator
from typing import Any, NamedTuple


class Found(NamedTuple):
    """An entry of a file: what it is (`batch`, `record`, `entry`, ...), and its fields."""

    kind: str
    fields: dict[str, Any]


class Problem(NamedTuple):
    """Something in a file that should not be."""

    text: str


Findings = Generator[Found | Problem, None, None]
