"""The Python examples of README.md and of docs.

A block that needs the block before it stands behind the line `<!-- continues the example above -->`; the two are one
example. A block that needs more than it shows stands behind a comment with the rest:

    <!-- hidden
    from ottla.client import TopicPartition
    -->
"""

import re
from pathlib import Path
from typing import NamedTuple

from tests.tidy.tree import ROOT, ours

BLOCK = re.compile(
    r"(?P<continues><!-- continues the example above -->\n)?"
    r"(?:<!-- hidden\n(?P<hidden>.*?)-->\n)?"
    r"^(?P<indent> *)```(?:python|py)\n(?P<code>.*?)^ *```",
    re.MULTILINE | re.DOTALL,
)


class Example(NamedTuple):
    """A program of a page."""

    page: str
    number: int
    code: str

    @property
    def file_name(self) -> str:
        """The name of the file that a type checker sees."""
        return re.sub(r"\W+", "_", self.page.removesuffix(".md")) + f"_{self.number}.py"


def examples_of(page: str, text: str) -> list[Example]:
    """Return the examples of one page, in their order."""
    found: list[Example] = []
    for match in BLOCK.finditer(text):
        code = (match["hidden"] or "") + match["code"]
        if match["continues"] and found:
            found[-1] = found[-1]._replace(code=f"{found[-1].code}\n{code}")
        else:
            found.append(Example(page, len(found) + 1, code))
    return found


def examples() -> list[Example]:
    """Return all examples."""
    pages = [path for path in ours() if path.suffix == ".md" and path.is_relative_to(ROOT / "docs")]
    return [
        example
        for path in [ROOT / "README.md", *sorted(pages)]
        for example in examples_of(str(path.relative_to(ROOT)), Path(path).read_text(encoding="utf-8"))
    ]
