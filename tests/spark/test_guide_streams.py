"""Every example of the guide to streams runs, in the order of the page."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "streams.md"
SECTIONS = {
    title: re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for title, text in re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
}


def test_the_examples_are_there() -> None:
    assert {title for title, blocks in SECTIONS.items() if blocks} == {
        "Count words",
        "Enrich and aggregate orders",
        "Sessionize clicks",
        "Processors",
    }


@pytest.mark.parametrize("title", [title for title, blocks in SECTIONS.items() if blocks])
def test_an_example(spark: Any, title: str) -> None:
    # As a module of its own, where dataclasses and processes of Spark's find it.
    module = ModuleType("guide_" + re.sub(r"\W+", "_", title.lower()))
    sys.modules[module.__name__] = module
    try:
        for block in SECTIONS[title]:
            exec(compile(block, str(PAGE), "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
