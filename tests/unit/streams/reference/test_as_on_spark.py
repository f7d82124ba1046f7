"""What the tests of tests/spark expect of Spark is what the reference gives: the same tables, run without Spark.

Of those tests each that needs nothing but a topology runs here too, and none is named: a new one is held to both. Those
that take Spark itself in hand do not; and those of which Spark alone is expected are in `ONLY_SPARK`, with the reason.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import ModuleType
from typing import Any

import pytest

from ottla.streams import App, StreamsError
from ottla.streams.reference.interpreter import Interpreter
from ottla.streams.trial import _raw, _source
from tests.spark import test_streams_stateful as stateful
from tests.spark import test_streams_stateless as stateless

ONLY_SPARK = {
    "test_dead_letters": "the reasons are in the words of Spark's own reader; see test_failures",
    "test_a_null_that_a_function_does_not_expect_is_named": "a function that is called sees None; see test_failures",
}
# What a test says that takes Spark itself in hand.
IN_HAND = re.compile(r"\bspark\.|lowering|SparkFailure")
Case = tuple[ModuleType, str, Mapping[str, Any]]


def run(app: App, *parts: Mapping[str, Sequence[Any]], restart: bool = False) -> Any:
    """What `run` of tests/spark/test_streams_stateful does: a micro-batch a part. There is nothing to restart."""
    plan = app.plan()
    running = Interpreter(plan, updates=app.settings.updates, native=app.settings.native)
    clock, offsets = count(), count()
    found: dict[str, list[Any]] = {}
    for part in parts:
        raw = {
            topic: [_raw(topic, each, _source(plan, topic), clock, offsets) for each in records]
            for topic, records in part.items()
        }
        for each in running.batch(raw):
            found.setdefault(each.record.topic, []).append(stateful._plain(each.record))
    return found


def failure(app: App, given: dict[str, list[Any]]) -> str:
    with pytest.raises(StreamsError) as caught:
        app.test(given)
    return str(caught.value)


def fixtures_of(module: ModuleType) -> dict[str, Any]:
    """The functions behind a module's fixtures that need Spark and nothing else."""
    found = {}
    for name, each in vars(module).items():
        call = getattr(each, "_get_wrapped_function", lambda: None)()
        if call is not None and list(inspect.signature(call).parameters) == ["spark"]:
            found[name] = call
    return found


def cases(module: ModuleType) -> Iterator[Any]:
    known = {*fixtures_of(module), "spark", "tmp_path"}
    for name, test in vars(module).items():
        if not name.startswith("test_") or name in ONLY_SPARK or IN_HAND.search(inspect.getsource(test)):
            continue
        taken = set(inspect.signature(test).parameters)
        marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
        named = {each.strip() for mark in marks for each in _names(mark)}
        if not taken <= known | named or not taken & known:
            continue
        for n, given in enumerate(_given(marks)):
            yield pytest.param((module, name, given), id=f"{name}-{n}" if marks else name)


def _names(mark: pytest.Mark) -> list[str]:
    names = mark.args[0]
    return names.split(",") if isinstance(names, str) else list(names)


def _given(marks: list[pytest.Mark]) -> Iterator[dict[str, Any]]:
    if not marks:
        yield {}
        return
    (mark,) = marks
    names = _names(mark)
    for each in mark.args[1]:
        yield dict(zip(names, (each,) if len(names) == 1 else each, strict=True))


@pytest.fixture(scope="module")
def made() -> Iterator[dict[tuple[str, str], Any]]:
    """What each fixture gives, once it has been asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stateful, "run", run)
        patch.setattr(stateless, "failure", failure)
        yield {}


@pytest.mark.parametrize("case", [*cases(stateless), *cases(stateful)])
def test_as_on_spark(case: Case, made: dict[tuple[str, str], Any], tmp_path: Any) -> None:
    module, name, given = case
    test = getattr(module, name)
    arguments = dict(given)
    for each in inspect.signature(test).parameters:
        if each in arguments:
            continue
        if each == "tmp_path":
            arguments[each] = tmp_path
        elif each == "spark":
            arguments[each] = None
        else:
            key = (module.__name__, each)
            if key not in made:
                made[key] = fixtures_of(module)[each](None)
            arguments[each] = made[key]
    test(**arguments)


def test_most_of_them_run_here() -> None:
    assert len(list(cases(stateless))) > 40
    assert len(list(cases(stateful))) > 20


@pytest.mark.parametrize("name", ONLY_SPARK)
def test_what_only_spark_does_is_there(name: str) -> None:
    assert hasattr(stateless, name) or hasattr(stateful, name)
