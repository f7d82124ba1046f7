"""Each blocking client has the methods of its client of asyncio: same parameters, defaults, results and words."""

import inspect
import re
from typing import Any

import pytest

import ottla.client as asynchronous
import ottla.client.admin as admin
from ottla.client import blocking
from ottla.client.blocking import admin as blocking_admin
from tests.unit.client.public import function_of, members

PARTS = [name for name in blocking_admin.__all__ if name != "Admin"]
PAIRS: list[Any] = [
    *(
        (getattr(asynchronous, name), getattr(blocking, name))
        for name in blocking.__all__
        if name != "Delivery"
    ),
    *((getattr(admin, name), getattr(blocking_admin, name)) for name in PARTS),
]
# These hand a record over and return, so they wait and fail in other ways.
OTHER_WORDS = {"Producer.send", "Producer.send_nowait"}


def name_of(kind: type) -> str:
    return kind.__name__ if isinstance(kind, type) else ""


def text(kind: Any) -> str:
    """An annotation as it is written, without what asyncio adds to it."""
    written = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    written = re.sub(r"\bottla\.client\.(?:\w+\.)*", "", written).replace('"', "").replace("'", "")
    return re.sub(r"\bAsync(Iterator|Generator)\b", r"\1", written)


def words(member: Any) -> str:
    return (inspect.getdoc(member) or "").replace("`async with`", "`with`").replace("await ", "")


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=name_of)
def test_it_has_the_same_methods(theirs: type, ours: type) -> None:
    assert {name for name, _ in members(ours)} == {name for name, _ in members(theirs)}
    for name in ("__iter__", "__aiter__"):
        assert hasattr(ours, "__iter__") == hasattr(theirs, "__aiter__"), name
    assert not hasattr(ours, "__getattr__")
    assert words(ours) == words(theirs)


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=name_of)
def test_its_methods_take_and_return_the_same(theirs: type, ours: type) -> None:
    mine = dict(members(ours))
    for name, member in members(theirs):
        where = f"{ours.__name__}.{name}"
        other, own = function_of(member), function_of(mine[name])
        assert isinstance(member, property) == isinstance(mine[name], property), where
        assert not inspect.iscoroutinefunction(own), where
        expected, found = inspect.signature(other), inspect.signature(own)
        assert [str(each.replace(annotation=each.empty)) for each in found.parameters.values()] == [
            str(each.replace(annotation=each.empty)) for each in expected.parameters.values()
        ], where
        for parameter in expected.parameters.values():
            annotation = found.parameters[parameter.name].annotation
            assert text(annotation) == text(parameter.annotation), f"{where}({parameter.name})"
        assert text(found.return_annotation) == text(expected.return_annotation), where
        assert getattr(own, "__deprecated__", None) == getattr(other, "__deprecated__", None), where
        if where not in OTHER_WORDS:
            assert words(own) == words(other), where


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=name_of)
def test_it_accepts_the_same_old_names(theirs: type, ours: type) -> None:
    for (name, member), (_, own) in zip(members(theirs), members(ours), strict=True):
        if not isinstance(member, property):
            assert hasattr(own, "__wrapped__") == hasattr(member, "__wrapped__"), f"{ours.__name__}.{name}"


def test_every_part_of_an_admin_client_is_there() -> None:
    from ottla.client.blocking.admin.admin import Admin as BlockingAdmin

    names = {name for name in vars(admin.Admin("127.0.0.1:1")) if not name.startswith("_")}
    client = BlockingAdmin("127.0.0.1:1")
    try:
        assert {name for name in vars(client) if not name.startswith("_")} == names
    finally:
        client.close()


def test_both_are_made_alike() -> None:
    for theirs, ours in PAIRS[: len(blocking.__all__) - 1]:
        assert inspect.signature(ours) == inspect.signature(theirs)
