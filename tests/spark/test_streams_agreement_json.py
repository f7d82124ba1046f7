"""JSON that Spark reads, beside JSON that Python reads: the same value comes of both, or none of either.

Every field has every kind of JSON in its place once, and some hundred documents have several; a run says its seed:

    AGREEMENT_SEED=123 python -m pytest tests/spark/test_streams_agreement_json.py
"""

import datetime
import json
import random
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from ottla.streams.errors import Unreadable
from ottla.streams.types.codec import plain_decoder
from ottla.streams.types.serde import serde
from tests.agreement.values import SEED, Part, Status, same


@dataclass
class Document:
    text: str
    whole: int
    real: float
    truth: bool
    decimal: Decimal
    at: datetime.datetime
    day: datetime.date
    raw: bytes
    status: Status
    part: Part
    list: list[str]
    names: dict[str, str]
    pair: tuple[int, str]
    maybe: str | None = None
    number: int = 7
    fine: bool = True


GOOD = {
    "text": "a", "whole": 1, "real": 1.5, "truth": True, "decimal": 1.25,
    "at": "2024-01-01T00:00:00Z", "day": "2024-01-01",
    "raw": "AP8=", "status": "new", "part": {"sku": "x"}, "list": ["a"], "names": {"a": "b"},
    "pair": {"_1": 1, "_2": "z"},
}  # fmt: skip
SCALARS = [
    "null", "true", "false", "0", "-0", "1", "-1", "1.0", "1e2", "1E400", "-0.0", "0.1", "9223372036854775807", "5",
    "9223372036854775808", "123456789012345678901234567890", "1e-30", "0.0000000000000000005",
    "0.0000000000000000015",
    "99999999999999999999", "100000000000000000000", "NaN", "Infinity", "-Infinity", '"NaN"', '"Infinity"', '"-INF"',
    '"nan"', '""', '"a"', '"5"', '"1.5"', '"1e3"', '" 1"', '"1,234"', '"true"', '"null"', '"{}"', '"[1]"', '"new"',
    '"paid"', '"NEW"', '"AP8="', '"AP8"', '"AP9="', '"A=8="', '"AAAA"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00x"',
    '"\\\\ud83d"', '"\\u0000"', '"\\u00e9"', "{}", "[]", '{"sku":"x"}', '{"sku":5}', '{"sku":null}', '["a"]', "[5]",
    '["a",null]', '{"a":"b"}', '{"a":5}', '{"a":null}', '{"a":"b","a":"c"}', '{"sku":"x","sku":"y","n":2}',
    '{"_1":1,"_2":"z"}', '{"_1":1}', '[1,"z"]', '"2024-01-01"', '"2024-1-1"', '"20240101"',
    '"2024-W01-1"', '"2024-02-30"',
    '"0000-01-01"', '"0001-01-01"', '"9999-12-31"', '"10000-01-01"', '"2024-01-01T00:00"', '"2024-01-01 10:11:12.5"',
    '"2024-01-01T00:00:00.123456789Z"', '"2024-01-01T00:00:00+02:00"', '"2024-01-01T00:00:00+18:01"', '"T10:00"',
    '"2024-01-01T00:00:00-18:00"', '"2024-01-01T24:00:00Z"', '"2024-01-01T23:59:60Z"', '"0001-01-01T00:00:00+01:00"',
    '"9999-12-31T23:59:59-01:00"', '"2024-01-01T00:00:00 Europe/Paris"', '"1704067200"', "1704067200", "1704067200.5",
    "-62135596800", "-62135596801", "253402300799", "253402300800", '"2024-01-01T00:00:00z"', '"2024-01-01T25:00"',
    '"1500-02-29"', '"1582-10-10"', '"1582-10-10T00:00:00Z"', "'a'", "+1", "01", ".5", "1.", "tru", '"\t"', '"\\x"',
]  # fmt: skip
# As a whole.
DOCUMENTS = [
    b"", b" ", b"null", b" null\t\r\n", b"{", b"[]", b"5", b'"a"', b"{} {}", b"{}x", b"[{}]",
    b'{"text":"\xff"}', b"\xff",
    b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"NaN", b"{'text':'a'}", b"nul", b"\x00", b"{}]", b"{}}", b'{"a":1,}',
]  # fmt: skip


def documents(chosen: random.Random, count: int) -> list[bytes]:
    """Right documents with something put in the place of some of their fields, or left out."""
    names = [each.name for each in fields(Document)]
    found = []
    for n in range(count):
        texts = {name: json.dumps(each) for name, each in GOOD.items()}
        for name in chosen.sample(names, 1 if n % 3 else 2):
            if chosen.random() < 0.1:
                texts.pop(name, None)
            else:
                texts[name] = chosen.choice(SCALARS)
        members = [f"{json.dumps(name)}{chosen.choice([':', ' : '])}{text}" for name, text in texts.items()]
        chosen.shuffle(members)
        found.append(("{" + ", ".join(members) + "}").encode())
    return found


def test_json_is_read_alike(spark: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from ottla.streams.lowering.decoding import decoded, parsed

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    form = serde(Document)
    every = [name for name in (each.name for each in fields(Document)) for _ in SCALARS]
    single = []
    for name, text in zip(every, SCALARS * len(fields(Document)), strict=True):
        texts_ = {other: json.dumps(each) for other, each in GOOD.items()} | {name: text}
        single.append(("{" + ",".join(f'"{other}":{each}' for other, each in texts_.items()) + "}").encode())
    given = [*DOCUMENTS, *single, *documents(random.Random(SEED), 500)]
    frame = spark.createDataFrame([(n, each) for n, each in enumerate(given)], "n int, raw binary").coalesce(
        1
    )
    frame = frame.withColumn("parsed", parsed(form, F.col("raw")))
    halves = decoded(form, F.col("raw"), F.col("parsed"))
    frame = frame.select("n", halves.value.alias("value"), halves.reason.alias("reason"))
    answers = sorted(frame.toArrow().to_pylist(), key=lambda each: each["n"])
    plain, wrong = plain_decoder(form), []
    for data, answer in zip(given, answers, strict=True):
        try:
            python = plain(data)
        except Unreadable as error:
            if answer["reason"] is None:
                wrong.append(f"{data!r} is read as {answer['value']!r}, and Python says {error}")
            continue
        spark_value = None if answer["value"] is None else form.type.load(answer["value"])
        if answer["reason"] is not None:
            wrong.append(f"{data!r}: {answer['reason']}, and Python reads it")
        elif not same(spark_value, None if python is None else form.type.load(python)):
            wrong.append(f"{data!r} is read as {spark_value!r}, not {python!r}")
    assert not wrong, f"AGREEMENT_SEED={SEED}: {len(wrong)} differ, and these first:\n" + "\n".join(
        wrong[:25]
    )
