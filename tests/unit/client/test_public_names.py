"""What public signatures mention, and what public docstrings say is raised, can be imported from a public package."""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import ottla.client
import ottla.client.admin
import ottla.client.blocking
import ottla.client.blocking.admin
from ottla.client import ClientError, SettingError, errors
from tests.unit.client.public import function_of, members

PACKAGES = [ottla.client, ottla.client.blocking, ottla.client.admin, ottla.client.blocking.admin]
EXPORTED: dict[str, Any] = {name: getattr(package, name) for package in PACKAGES for name in package.__all__}
# A class may have another name where it is defined.
EXPORTED |= {kind.__name__: kind for kind in EXPORTED.values() if isinstance(kind, type)}
CLASSES = [
    pytest.param(getattr(package, name), id=f"{package.__name__}.{name}")
    for package in PACKAGES
    for name in package.__all__
    if isinstance(getattr(package, name), type)
]
# Python's, and what only says how types belong together.
BUILT_IN = {
    "Any",
    "Self",
    "Iterable",
    "Iterator",
    "AsyncIterator",
    "Mapping",
    "Sequence",
    "Collection",
    "Callable",
}
BUILT_IN |= {"Awaitable", "Generator", "RecordBatch", "ClassVar", "Literal", "None"}
ERRORS = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
}


def annotations(member: Any) -> list[Any]:
    signature = inspect.signature(function_of(member))
    return [signature.return_annotation, *(each.annotation for each in signature.parameters.values())]


def names(annotation: Any) -> set[str]:
    """The names in an annotation that are classes or aliases of ours."""
    written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return {
        name
        for path in re.findall(r"[A-Za-z_][\w.]*", written)
        if (name := path.rpartition(".")[2])[0].isupper() and (path == name or path.startswith("ottla."))
    }


def test_every_error_is_exported() -> None:
    assert ERRORS <= set(ottla.client.__all__)
    assert issubclass(SettingError, ValueError)
    assert all(issubclass(getattr(errors, name), ClientError) for name in ERRORS)


@pytest.mark.parametrize("kind", CLASSES)
def test_what_signatures_mention_is_exported(kind: type) -> None:
    for name, member in members(kind):
        for annotation in annotations(member):
            missing = names(annotation) - set(EXPORTED) - BUILT_IN
            assert not missing, f"{kind.__name__}.{name}: {missing}"


@pytest.mark.parametrize("kind", CLASSES)
def test_what_fields_mention_is_exported(kind: type) -> None:
    for base in kind.__mro__:
        for name, annotation in inspect.get_annotations(base).items():
            if base.__module__.startswith("ottla.") and not name.startswith("_"):
                missing = names(annotation) - set(EXPORTED) - BUILT_IN
                assert not missing, f"{kind.__name__}.{name}: {missing}"


@pytest.mark.parametrize("kind", CLASSES)
def test_what_docstrings_say_is_raised_is_exported(kind: type) -> None:
    for name, member in [("", kind), *members(kind)]:
        text = inspect.getdoc(member) or ""
        for sentence in re.findall(r"\b[Rr]aises? ([^`]*?)(?:\.\s|\.$|$)", text, re.DOTALL):
            for word in re.findall(
                r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b|\b(?:Refused|Fenced|Closed|Malformed)\b", sentence
            ):
                assert word in ERRORS | {"SettingError", "ImportError", "TimeoutError"}, (
                    f"{kind.__name__}.{name}: {word}"
                )


@pytest.mark.parametrize("kind", CLASSES)
def test_everything_public_has_words(kind: type) -> None:
    assert kind.__doc__, kind
    for name, member in members(kind):
        if member.__module__.startswith("ottla") if inspect.isfunction(member) else True:
            assert inspect.getdoc(member), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("package", PACKAGES[:1])
def test_what_is_imported_when_first_used_is_what_type_checkers_see(package: Any) -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(package)))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == package._MODULES
    assert sorted(seen) == sorted(package.__all__)


def test_importing_the_package_loads_no_client() -> None:
    code = "import sys, ottla.client; print([n for n in sys.modules if n.startswith('ottla.client.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
