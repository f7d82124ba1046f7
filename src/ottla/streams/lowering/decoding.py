"""Bytes to values as Columns, and why it did not work where it did not.

D1  A value means nothing where there is a reason why it could not be read; where there is none, it is null when its
    bytes are null.
D2  What these Columns read `types/codec.py` reads alike. Types beyond them are left to it (`decodable` says which).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from ottla.streams.lowering.columns import once
from ottla.streams.lowering.datatypes import spark_type
from ottla.streams.types.codec import encoder
from ottla.streams.types.serde import Serde
from ottla.streams.types.struct import Anything, Choice, Pair, Struct, WindowedKey
from ottla.streams.types.type import Array, Dictionary, Integer, Nullable, Type

_WIDTHS = {"short": 2, "integer": 4, "long": 8}
_CORRUPT = "_unreadable"
# Nothing is guessed, and no zone but UTC is anybody's.
_JSON = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "timeZone": "UTC",
    "allowNonNumericNumbers": "false",
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A value, and the reason why there is none: null where there is none to give."""

    value: Column
    reason: Column


def decodable(serde: Serde) -> bool:
    """Return whether Columns can read it."""
    if serde.format == "json":
        # As a whole it is kept as the text it is; inside of others Spark has no type for it.
        return isinstance(serde.type, Anything) or not _has_anything(serde.type)
    return serde.format in ("string", "bytes", "boolean", *_WIDTHS)


def _has_anything(type: Type) -> bool:
    return any(isinstance(each, Anything) for each in _inner(type))


def _inner(type: Type) -> Iterator[Type]:
    yield type
    if isinstance(type, Nullable | Array):
        yield from _inner(type.of)
    elif isinstance(type, Dictionary):
        yield from _inner(type.value)
    elif isinstance(type, Struct):
        for field in type.fields:
            yield from _inner(field.type)
    elif isinstance(type, Pair):
        for part in type.parts:
            yield from _inner(part)
    elif isinstance(type, WindowedKey):
        yield from _inner(type.of)


def parsed(serde: Serde, data: Column) -> Column:
    """Return what has to be computed once, before `decoded` looks at it from several sides."""
    if serde.format != "json" or isinstance(serde.type, Anything):
        return data
    inner = spark_type(serde.type)
    if isinstance(inner, StructType):
        return once(F.from_json(data.cast("string"), _open(inner), _JSON))
    # Spark reads nothing but objects at the top.
    wrapped = F.concat(F.lit('{"it":'), data.cast("string"), F.lit("}"))
    return once(F.from_json(wrapped, _open(StructType([StructField("it", inner)])), _JSON))


def _open(schema: StructType) -> StructType:
    return StructType([*schema.fields, StructField(_CORRUPT, StringType())])


def decoded(serde: Serde, data: Column, found: Column) -> Decoded:
    """Return the value of bytes; `found` is the column that `parsed` has become."""
    if serde.format == "bytes":
        return Decoded(data, F.lit(None).cast("string"))
    if serde.format == "string":
        text = data.cast("string")
        bad = ~F.is_valid_utf8(text)
        return Decoded(F.when(~bad, text), F.when(bad, F.lit("its bytes are not UTF-8")))
    if serde.format == "boolean":
        fine = (F.octet_length(data) == 1) & F.hex(data).isin("00", "01")
        return Decoded(F.when(fine, F.hex(data) == "01"), F.when(~fine, _wrong_size(data, "boolean")))
    if serde.format in _WIDTHS:
        return _integer(serde, data)
    if isinstance(serde.type, Anything):
        text = data.cast("string")
        bad = F.try_parse_json(text).isNull() | ~F.is_valid_utf8(text)
        return Decoded(F.when(~bad, text), F.when(data.isNotNull() & bad, F.lit("it is not JSON")))
    return _json(serde.type, data, found)


def _wrong_size(data: Column, name: str) -> Column:
    return F.concat(F.lit("its "), F.octet_length(data).cast("string"), F.lit(f" bytes are no {name}"))


def _integer(serde: Serde, data: Column) -> Decoded:
    width = _WIDTHS[serde.format]
    fine = F.octet_length(data) == width
    number = F.conv(F.hex(data), 16, -10).cast("bigint")
    if width < 8:
        number = F.when(number >= 1 << 8 * width - 1, number - (1 << 8 * width)).otherwise(number)
    assert isinstance(serde.type, Integer)
    return Decoded(
        F.when(fine, number).cast(spark_type(serde.type)), F.when(~fine, _wrong_size(data, serde.format))
    )


def _json(type: Type, data: Column, found: Column) -> Decoded:
    is_struct = isinstance(spark_type(type), StructType)
    whole = found if is_struct else found.getField("it")
    wrong = [(found.getField(_CORRUPT).isNotNull(), "it is not JSON of the type that is wanted")]
    if is_struct:
        wrong.append((found.isNull(), "it is not a JSON object"))
    wrong += list(_faults(type, whole, ""))
    # A null of JSON's is as good as one of Kafka's.
    there = data.isNotNull() & (F.trim(data.cast("string")) != "null")
    reason = F.when(there, F.coalesce(*(F.when(fault, F.lit(text)) for fault, text in wrong)))
    return Decoded(F.when(there, filled(type, whole)), reason)


def _faults(type: Type, found: Column, path: str) -> Iterator[tuple[Column, str]]:
    """What may be wrong with something that Spark has read: of what is not null, what should not be."""
    if isinstance(type, Nullable):
        yield from _faults(type.of, found, path)
    elif isinstance(type, Choice):
        yield ~found.isin(*type.texts()), f"{path or 'it'} is none of {', '.join(type.texts())}"
    elif isinstance(type, Array):
        yield from _inside(type.of, lambda fault: F.exists(found, fault), f"{path}[]")
    elif isinstance(type, Dictionary):
        yield from _inside(type.value, lambda fault: F.exists(F.map_values(found), fault), f"{path}{{}}")
    elif isinstance(type, Struct):
        for field in type.fields:
            name = f"{path}.{field.name}" if path else field.name
            part = found.getField(field.name)
            if field.required and not isinstance(field.type, Nullable):
                yield found.isNotNull() & part.isNull(), f"{name} is missing"
            yield from _faults(field.type, part, name)
    elif isinstance(type, Pair):
        for n, of in enumerate(type.parts, 1):
            part = found.getField(f"_{n}")
            if not isinstance(of, Nullable):
                yield found.isNotNull() & part.isNull(), f"{path or 'it'}[{n - 1}] is missing"
            yield from _faults(of, part, f"{path}[{n - 1}]")


def _inside(
    of: Type, within: Callable[[Callable[[Column], Column]], Column], path: str
) -> Iterator[tuple[Column, str]]:
    """The faults that any element may have, each as one condition on the whole."""

    def nth(n: int) -> Callable[[Column], Column]:
        return lambda each: list(_faults(of, each, path))[n][0]

    for n, (_, text) in enumerate(list(_faults(of, F.lit(None).cast(spark_type(of)), path))):
        yield within(nth(n)), text
    if not isinstance(of, Nullable):
        yield within(lambda each: each.isNull()), f"{path} is missing"


def filled(type: Type, found: Column) -> Column:
    """Return what was read with the defaults of fields that were not there, and without what only reading needed."""
    if isinstance(type, Nullable):
        return filled(type.of, found)
    if isinstance(type, Struct | Pair | WindowedKey):
        return F.when(found.isNotNull(), F.struct(*_filled_parts(type, found)))
    if isinstance(type, Array) and _needs_filling(type.of):
        return F.transform(found, lambda each: filled(type.of, each))
    if isinstance(type, Dictionary) and _needs_filling(type.value):
        return F.transform_values(found, lambda _, each: filled(type.value, each))
    return found


def _filled_parts(type: Type, found: Column) -> Iterator[Column]:
    if isinstance(type, Struct):
        for field in type.fields:
            part = filled(field.type, found.getField(field.name))
            if field.default is not None:
                part = F.coalesce(part, _literal(field.type, field.default))
            yield part.alias(field.name)
    elif isinstance(type, Pair):
        for n, of in enumerate(type.parts, 1):
            yield filled(of, found.getField(f"_{n}")).alias(f"_{n}")
    else:
        assert isinstance(type, WindowedKey)
        yield filled(type.of, found.getField("key")).alias("key")
        yield found.getField("start").alias("start")
        yield found.getField("end").alias("end")


def _needs_filling(type: Type) -> bool:
    return any(
        isinstance(each, Struct) and any(field.default is not None for field in each.fields)
        for each in _inner(type)
    )


def _literal(type: Type, default: object) -> Column:
    text = encoder(Serde(type, "json"))(default).decode()
    inner = spark_type(type)
    wrapped = F.lit(f'{{"it":{text}}}')
    return F.from_json(wrapped, StructType([StructField("it", inner)]), {"timeZone": "UTC"}).getField("it")
