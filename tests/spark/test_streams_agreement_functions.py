"""Functions that Spark computes, beside the same functions called by Python: random ones, of random values.

A job of Spark's checks some dozens of functions with some dozens of values; each function and value is a case of its
own, and is named when the two differ. A run says the seed that makes the same cases again:

    AGREEMENT_SEED=123 python -m pytest tests/spark/test_streams_agreement_functions.py

A function that was found to differ stays in FOUND.
"""

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ottla.streams.computing import encodable
from ottla.streams.errors import TopologyError, TypeMismatch
from ottla.streams.functions import function
from ottla.streams.plan.function import Function
from ottla.streams.types.codec import decoder, encoder
from ottla.streams.types.serde import serde
from ottla.streams.types.type import Boolean, Type
from ottla.streams.types.walk import as_key
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
    "str(k)", "str(k) + v.s", "str(v.s)", "str(v.i)", "str(str(k))", "len(str(k))", "Made(str(k), v.i)", "[str(k)]",
    "str(k).lower()", "str(k) == 'None'", "(str(k), v)",
    "abs(v.i // 2)", "(v.i + v.j) // 1", "(v.i + v.j) // -9223372036854775808", "abs(v.i % -9223372036854775808)",
    "Made(k, v.i, (v.i + v.j) // 1, v.note)", "v.i % -9223372036854775808",
]  # fmt: skip
# Of a key and a value that may be null as a whole, whatever type they have.
OF_ANY_TYPE = [
    "k", "v", "str(k)", "str(v)", "f'{v}'", "repr(v)", "format(v)", "'%s' % (v,)", "'{}'.format(v)", "str(str(v))",
    "str(k) + str(v)", "(str(k), str(v))", "[str(v)]", "len(str(v))", "str(v) == 'None'", "str(v).upper()",
    "v == None", "v != None", "v == k", "v != k", "v < k", "(k, v)", "[k, v]", "v + k", "v - k", "-v", "abs(v)",
    "v * 3", "float(v)", "v / 2", "v % 3", "v // 2", "len(v)", "v & k", "v.lower()", "k.startswith(v)",
    "Part(str(k), 1)", "Part(v, 1)", "Part('a', v)", "(v, 1.5 * v)", "str(v + k)", "str(v)[1:]", "v[1:]",
]  # fmt: skip


OFFERED = {"key": serde(str).type, "value": serde(Value).type}
FAILED = object()


def read(source: str, offered: Mapping[str, Type] = OFFERED) -> Function | None:
    """The function of a text, as an operator has it; None where nobody knows what it returns."""
    call = eval(f"lambda k, v: {source}", dict(NAMES))
    try:
        return function(call, offered, "map_values")
    except TopologyError:
        return None


def by_python(found: Function, key: Any, value: Any) -> Any:
    """What comes of calling it: what Spark takes, or that it failed."""
    try:
        result = found.call(key, value)
        return None if result is None else found.result.dump(result)
    except (TypeError, AttributeError, TypeMismatch):
        return FAILED


class Failures:
    """Which functions have failed on Spark, of which rows: Java's system properties know, as Spark is in local mode."""

    def __init__(self) -> None:
        self.mark = ""
        self.of = ""  # the function whose Column is being made
        self._serial = count()

    def begin(self) -> None:
        self.mark = f"ottla-failed-{next(self._serial)}"

    def end(self, spark: Any) -> set[tuple[str, int]]:
        """The functions and the rows that have failed since `begin`."""
        properties = spark._jvm.java.lang.System.getProperties()
        names = [each for each in properties.stringPropertyNames() if each.startswith(f"{self.mark}:")]
        for each in names:
            properties.remove(each)
        return {(of, int(n)) for _, of, n in (each.split(":") for each in names)}


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> Failures:
    """One row that fails would end the job of all: so a failure is a null here, and is put down where it happens."""
    from pyspark.sql import functions as F  # noqa: N812

    found = Failures()

    def put_down(message: Any) -> Any:
        name = F.concat(F.lit(f"{found.mark}:{found.of}:"), F.col("n").cast("string"))
        done = F.reflect(F.lit("java.lang.System"), F.lit("setProperty"), name, F.lit("failed"))
        return F.when(done == "", F.lit(None)).otherwise(F.lit(None))

    monkeypatch.setattr(F, "raise_error", put_down)
    return found


@pytest.fixture
def differences(spark: Any, failures: Failures) -> Callable[..., Iterator[str]]:
    from pyspark.sql import functions as F  # noqa: N812

    from ottla.streams.lowering.columns import computed, once
    from ottla.streams.lowering.datatypes import spark_type
    from ottla.streams.lowering.decoding import decoded, parsed
    from ottla.streams.lowering.failing import Failing
    from ottla.streams.lowering.writing import encoded

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    form, encode, decode = serde(Value), encoder(serde(Value)), decoder(serde(Value))
    places = "topic string, partition int, offset bigint"

    def values_of_json(rows: list[tuple[Any, Any]]) -> tuple[Any, list[Any]]:
        """A frame of JSON that Spark has read, and what Python reads of it."""
        datas = [None if value is None else encode(value) for _, value in rows]
        given = [
            (n, key, data, "t", 0, n) for n, ((key, _), data) in enumerate(zip(rows, datas, strict=True))
        ]
        frame = spark.createDataFrame(given, f"n int, key string, raw binary, {places}").coalesce(1)
        frame = frame.withColumn("parsed", parsed(form, F.col("raw")))
        halves = decoded(form, F.col("raw"), F.col("parsed"))
        frame = frame.withColumns({"value": once(halves.value), "reason": halves.reason})
        return frame, [None if data is None else decode(data) for data in datas]

    def plain_values(rows: list[tuple[Any, Any]], offered: Mapping[str, Type]) -> tuple[Any, list[Any]]:
        kinds = list(offered.values())
        given = [
            (n, *(None if each is None else kind.dump(each) for kind, each in zip(kinds, row, strict=True)), "t", 0, n)
            for n, row in enumerate(rows)
        ]  # fmt: skip
        columns = f"n int, key {kinds[0].ddl()}, value {kinds[1].ddl()}, {places}"
        frame = spark.createDataFrame(given, columns).coalesce(1)
        loaded = [None if value is None else kinds[1].load(kinds[1].dump(value)) for _, value in rows]
        return frame.withColumn("reason", F.lit(None).cast("string")), loaded

    def differ(
        sources: list[str], rows: list[tuple[Any, Any]], offered: Mapping[str, Type] = OFFERED
    ) -> Iterator[str]:
        found = {source: read(source, offered) for source in dict.fromkeys(sources)}
        traced = {
            source: each for source, each in found.items() if each is not None and each.expression is not None
        }
        is_json = offered is OFFERED
        frame, backs = values_of_json(rows) if is_json else plain_values(rows, offered)
        failures.begin()
        given_columns = {"key": F.col("key"), "value": F.col("value")}
        results = []
        for n, each in enumerate(traced.values()):
            failures.of = f"f{n}"
            made = once(computed(each, given_columns, "op")).cast(spark_type(each.result))
            results.append(made.alias(f"f{n}"))
        forms = [serde(each.result) for each in traced.values()]
        fails, failures.of = Failing("op", "?", has_record=False), "written"
        written = [
            encoded(each, F.col(f"f{n}"), fails).alias(f"b{n}")
            for n, each in enumerate(forms)
            if encodable(each)
        ]
        frame = frame.select("n", "reason", *results).select("*", *written)
        answers = sorted(frame.toArrow().to_pylist(), key=lambda each: each["n"])
        failed = failures.end(spark)
        for row, ((key, value), back, answer) in enumerate(zip(rows, backs, answers, strict=True)):
            if answer["reason"] is not None:
                yield f"{value!r} cannot be read back: {answer['reason']}"
                continue
            if not same(back, value):
                yield f"{value!r} is read back as {back!r}"
            for n, (source, each) in enumerate(traced.items()):
                yield from _case(source, each, key, back, answer, n, has_failed=(f"f{n}", row) in failed)

    return differ


def _case(
    source: str,
    found: Function,
    key: Any,
    value: Any,
    answer: dict[str, Any],
    n: int,
    *,
    has_failed: bool,
) -> Iterator[str]:
    plain = by_python(found, key, value)
    where = f"lambda k, v: {source}\n    of k={key!r}, v={value!r}\n    "
    if plain is FAILED or has_failed:
        if not has_failed:
            yield f"{where}is {answer[f'f{n}']!r}, and Python fails"
        elif plain is not FAILED:
            yield f"{where}fails, and Python gives {plain!r}"
        return
    spark = None if answer[f"f{n}"] is None else found.result.load(answer[f"f{n}"])
    python = None if plain is None else found.result.load(plain)
    if not same(spark, python):
        yield f"{where}is {spark!r}, not {python!r}"
    elif python is not None and f"b{n}" in answer:
        data = encoder(serde(found.result))(python)
        if not same_json(bytes(answer[f"b{n}"]), data):
            yield f"{where}is written as {bytes(answer[f'b{n}'])!r}, not as {data!r}"


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
        assert not found, f"{len(found)} differ, and these first:\n" + "\n".join(found[:5])

    try:
        check()
    except Exception as error:  # Spark's own as well, where what should not fail has ended a job
        error.add_note(f"AGREEMENT_SEED={SEED}")
        raise


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
    for one in (2**63 - 1, -(2**63)):
        rows.append(("k", replace(rows[0][1], i=one, j=one)))
        rows.append(("k", replace(rows[0][1], i=one, j=one // 1024)))
    rows += [(None, rows[0][1]), ("k", None), (None, None)]
    found = list(differences(FOUND, rows))
    assert not found, "\n".join(found[:10])


# Keys and values of a type, to be had as they are, and missing.
WHOLES: dict[Any, list[Any]] = {
    str: TEXTS, int: WHOLE, float: REALS, bool: [True, False], Decimal: DECIMALS, datetime.datetime: TIMES,
    datetime.date: DAYS, bytes: [b"", b"a\xff"], Status: list(Status), Part: [Part("a"), Part("", -1)],
    list[str]: [[], ["a", ""]], set[int]: [set(), {2, 1}], dict[str, int]: [{}, {"a": 1, "b": 2}],
    Any: [{"a": [1, None]}],
}  # fmt: skip


def test_keys_and_values_of_every_type_that_may_be_null(differences: Any) -> None:
    found: list[str] = []
    for kind, known in WHOLES.items():
        rows: list[tuple[Any, Any]] = [
            *zip(known, known[::-1], strict=True),
            (known[0], None),
            (None, known[-1]),
        ]
        offered = {"key": as_key(serde(kind).type), "value": serde(kind).type}
        found += differences(OF_ANY_TYPE, [*rows, (None, None)], offered)
    assert not found, f"{len(found)} differ:\n" + "\n".join(found[:10])


def test_a_failure_on_spark_is_seen(differences: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing would be compared where Python fails."""
    rows: list[tuple[Any, Any]] = [("a", 1), (None, 2), ("b", None)]
    offered = {"key": serde(str).type, "value": serde(int).type}
    monkeypatch.setitem(globals(), "by_python", lambda *_: None)
    found = [each.splitlines()[1].strip() for each in differences(["k.lower()", "v + 1", "v * v"], rows, offered)
             if "fails, and" in each]  # fmt: skip
    assert found == ["of k=None, v=2", "of k='b', v=None", "of k='b', v=None"]


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
