"""Functions that Spark computes, beside the same functions called by Python: random ones, of random values.

A job of Spark's checks some dozens of functions with some dozens of values; each function and value is a case of its
own, and is named when the two differ. A run says the seed that makes the same cases again:

    AGREEMENT_SEED=123 python -m pytest tests/spark/test_streams_agreement_functions.py

A function that was found to differ stays in FOUND.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.functions import function
from ottla.streams.plan.function import Function
from ottla.streams.types.codec import decoder, encoder
from ottla.streams.types.serde import serde
from ottla.streams.types.type import Boolean
from tests.agreement.functions import Grammar
from tests.agreement.values import (
    DAYS,
    DECIMALS,
    NAMES,
    REALS,
    SEED,
    TEXTS,
    TIMES,
    WHEN,
    WHOLE,
    Level,
    Part,
    Point,
    Status,
    Value,
    same,
    same_json,
    texts,
    values,
)

FUNCTIONS, VALUES = 50, 25


@st.composite
def batches(draw: Any) -> tuple[list[str], list[tuple[str | None, Value | None]]]:
    grammar = Grammar(draw, {"k": "str", "v": "Value"})
    sources = [grammar.result() for _ in range(FUNCTIONS)]
    nulls = st.tuples(st.none() | texts, values) | st.tuples(texts, st.none())
    rows = draw(st.lists(st.tuples(texts, values) | nulls, min_size=VALUES, max_size=VALUES))
    return sources, rows


# What has differed, or is likely to.
FOUND = [
    "v.f != v.f", "v.real != v.real", "9007199254740993 == v.f", "v.i == 9007199254740992.0",
    "v.i < v.f", "v.i < 2**64",
    "(v.i * 2654435761) % 4294967296", "v.i * v.j", "v.i + 1", "-v.i", "abs(v.i)", "v.i // -1", "(v.i + v.j) // 2",
    "v.i / 100", "v.i / 7", "(v.i * v.j) % 100", "v.i % -7", "v.i // -7", "str(v.i + v.j)",
    "v.i + v.f", "v.i * v.j + v.i",
    "v.s.lower()", "v.s.upper()", "v.t.strip()", "v.s.split()", "v.d < BIG", "v.d == TINY",
    "v.at < OLD", "v.day < DAY", "Made(k, v.i + v.j, v.i, v.note)", "Made(v.s, v.i).name",
    "v.flag", "(k, v)", "[k, v.s]",
]  # fmt: skip


OFFERED = {"key": serde(str).type, "value": serde(Value).type}
FAILED = object()


def read(source: str) -> Function | None:
    """The function of a text, as an operator has it; None where nobody knows what it returns."""
    call = eval(f"lambda k, v: {source}", dict(NAMES))
    try:
        return function(call, OFFERED, "map_values")
    except TopologyError:
        return None


def by_python(found: Function, key: Any, value: Any) -> Any:
    """What comes of calling it: what Spark takes, or that it failed."""
    try:
        result = found.call(key, value)
        return None if result is None else found.result.dump(result)
    except (TypeError, AttributeError, TypeMismatch):
        return FAILED


@pytest.fixture
def failures_are_null(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row that fails would end the job of all."""
    from pyspark.sql import functions as F  # noqa: N812

    monkeypatch.setattr(F, "raise_error", lambda message: F.lit(None))


@pytest.fixture
def differences(spark: Any, failures_are_null: None) -> Callable[[list[str], list[Any]], Iterator[str]]:
    from pyspark.sql import functions as F  # noqa: N812

    from ottla.streams.lowering.columns import computed, once
    from ottla.streams.lowering.datatypes import spark_type
    from ottla.streams.lowering.decoding import decoded, parsed
    from ottla.streams.lowering.failing import Failing
    from ottla.streams.lowering.writing import encodable, encoded

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    form, encode, decode = serde(Value), encoder(serde(Value)), decoder(serde(Value))
    columns = "n int, key string, raw binary, topic string, partition int, offset bigint"

    def differ(sources: list[str], rows: list[tuple[Any, Any]]) -> Iterator[str]:
        found = {source: read(source) for source in dict.fromkeys(sources)}
        traced = {
            source: each for source, each in found.items() if each is not None and each.expression is not None
        }
        datas = [None if value is None else encode(value) for _, value in rows]
        given = [
            (n, key, data, "t", 0, n) for n, ((key, _), data) in enumerate(zip(rows, datas, strict=True))
        ]
        frame = spark.createDataFrame(given, columns).coalesce(1)
        frame = frame.withColumn("parsed", parsed(form, F.col("raw")))
        halves = decoded(form, F.col("raw"), F.col("parsed"))
        frame = frame.withColumns({"value": once(halves.value), "reason": halves.reason})
        given_columns = {"key": F.col("key"), "value": F.col("value")}
        results = [
            once(computed(each, given_columns, "op")).cast(spark_type(each.result)).alias(f"f{n}")
            for n, each in enumerate(traced.values())
        ]
        forms = [serde(each.result) for each in traced.values()]
        fails = Failing("op", "?", has_record=False)
        written = [
            encoded(each, F.col(f"f{n}"), fails).alias(f"b{n}")
            for n, each in enumerate(forms)
            if encodable(each)
        ]
        frame = frame.select("n", "reason", *results).select("*", *written)
        answers = sorted(frame.toArrow().to_pylist(), key=lambda each: each["n"])
        for (key, value), data, answer in zip(rows, datas, answers, strict=True):
            if answer["reason"] is not None:
                yield f"{value!r} cannot be read back: {answer['reason']}"
                continue
            back = None if data is None else decode(data)
            if not same(back, value):
                yield f"{value!r} is read back as {back!r}"
            for n, (source, each) in enumerate(traced.items()):
                yield from _case(source, each, key, back, answer, n)

    return differ


def _case(
    source: str, found: Function, key: Any, value: Any, answer: dict[str, Any], n: int
) -> Iterator[str]:
    plain = by_python(found, key, value)
    spark = None if answer[f"f{n}"] is None else found.result.load(answer[f"f{n}"])
    where = f"lambda k, v: {source}\n    of k={key!r}, v={value!r}\n    "
    if plain is FAILED:
        if spark is not None and not _holds_null(answer[f"f{n}"]):
            yield f"{where}is {spark!r}, and Python fails"
        return
    python = None if plain is None else found.result.load(plain)
    if not same(spark, python):
        yield f"{where}is {spark!r}, not {python!r}"
    elif python is not None and f"b{n}" in answer:
        data = encoder(serde(found.result))(python)
        if not same_json(bytes(answer[f"b{n}"]), data):
            yield f"{where}is written as {bytes(answer[f'b{n}'])!r}, not as {data!r}"


def _holds_null(given: Any) -> bool:
    """Whether a failure inside of something has become a null there."""
    inside = given.values() if isinstance(given, dict) else given
    return given is None or (isinstance(given, list | dict) and any(map(_holds_null, inside)))


def _agree(differ: Any, examples: int) -> None:
    @seed(SEED)
    @settings(
        max_examples=max(examples // FUNCTIONS, 1),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(batches())
    def check(batch: tuple[list[str], list[Any]]) -> None:
        found = list(differ(*batch))
        assert not found, f"AGREEMENT_SEED={SEED}: {len(found)} differ, and these first:\n" + "\n".join(
            found[:5]
        )

    check()


def test_functions_agree(differences: Any) -> None:
    _agree(differences, 150)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_many_functions_agree(differences: Any) -> None:
    _agree(differences, 2000)


def test_what_once_differed(differences: Any) -> None:
    rows: list[tuple[Any, Any]] = []
    for n in range(max(map(len, (WHOLE, REALS, TEXTS, DECIMALS)))):
        whole, real, text = WHOLE[n % len(WHOLE)], REALS[n % len(REALS)], TEXTS[n % len(TEXTS)]
        decimal, time, day = DECIMALS[n % len(DECIMALS)], TIMES[n % len(TIMES)], DAYS[n % len(DAYS)]
        rows.append(
            (
                text,
                Value(
                    i=whole, j=WHOLE[-1 - n % len(WHOLE)], f=real, g=REALS[(n + 5) % len(REALS)], s=text,
                    t=TEXTS[(n + 4) % len(TEXTS)], b=n % 2 == 0, c=True, d=decimal, e=DECIMALS[(n + 1) % len(DECIMALS)],
                    at=time, until=WHEN, day=day, raw=text.encode()[:4], status=Status.PAID, level=Level.LOW,
                    part=Part(text, whole), parts=[Part(text)], point=Point(whole), names=[text], tags={text: whole},
                    pair=(whole, text), note=None if n % 3 else text, maybe=None if n % 4 else whole,
                    real=None if n % 5 else real, flag=None if n % 3 else True,
                ),
            )
        )  # fmt: skip
    rows += [(None, rows[0][1]), ("k", None), (None, None)]
    found = list(differences(FOUND, rows))
    assert not found, "\n".join(found[:10])


def test_most_of_the_grammar_is_read() -> None:
    """Else nothing would be compared."""
    sources: list[str] = []

    @seed(1)
    @settings(
        max_examples=4,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(batches())
    def gather(batch: tuple[list[str], Any]) -> None:
        sources.extend(batch[0])

    gather()
    found = {source: read(source) for source in sources}
    called = {source: None if each is None else each.called_because for source, each in found.items()}
    traced = [each for each in found.values() if each is not None and each.expression is not None]
    assert len(traced) > 0.7 * len(found), called


def test_a_predicate_is_the_same() -> None:
    assert function(lambda v: v.flag, OFFERED, "filter", Boolean()).expression is not None
