"""numpy and pyarrow are an extra: who reads or writes many records loads them, and only then. Spark needs both."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import SOURCE, modules, name, syntax

HEAVY = {"numpy", "pyarrow"}
# These import one of the two at their head, so nobody may import them there without being named here too.
HEAVY_MODULES = {
    "ottla.wire.columns": {"numpy"},
    "ottla.wire.columns_encoding": {"numpy", "pyarrow"},
    "ottla.client.consumer.arrow_arrays": {"numpy", "pyarrow"},
    "ottla.client.consumer.arrow_records": {"numpy", "pyarrow"},
}
# Nothing here works without them, so everything may have them.
HEAVY_ROOMS = {"spark", "streams"}


def module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, *, at_head: bool) -> set[str]:
    """Whole names of what is imported, at the head of the module or anywhere in it; types are not loaded."""
    waiting: list[ast.AST] = [syntax(path)]
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        elif not (at_head and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            waiting += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize("path", modules(), ids=name)
def test_who_loads_what(path: Path) -> None:
    if path.relative_to(SOURCE).parts[0] in HEAVY_ROOMS:
        return
    heavy = {each.partition(".")[0] for each in imports(path, at_head=False)} & HEAVY
    assert heavy <= HEAVY_MODULES.get(module(path), set())
    asked = imports(path, at_head=True) & HEAVY_MODULES.keys()
    assert not asked or module(path) in HEAVY_MODULES, f"import {asked} where it is used"
    anywhere = imports(path, at_head=False) & HEAVY_MODULES.keys()
    assert not anywhere or path.relative_to(SOURCE).parts[0] == "client", (
        "for those who have many records only"
    )


def test_a_client_starts_without_them() -> None:
    command = (
        "import sys, ottla.client.consumer.record_objects;"
        " print([m for m in ('numpy', 'pyarrow') if m in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.strip() == "[]"
