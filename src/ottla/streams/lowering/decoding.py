"""Bytes to values as Columns, and why it did not work where it did not.

D1  A value means nothing where there is a reason why it could not be read; where there is none, it is null when its
    bytes are null.
D2  What these Columns read `types/codec.py` reads alike. What is beyond them is left to it (`decodable` says which).

JSON is read by Spark, which is more generous than the codec: it takes a number for a text, half a surrogate pair for a
question mark, many spellings for a time. So times, dates and bytes are read as text and looked at here; and where a
text looks as if it may have been none, the JSON is read once more, in a way that tells.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from ottla.streams.lowering.columns import once
from ottla.streams.lowering.datatypes import spark_type
from ottla.streams.types.codec import encoder
from ottla.streams.types.json_value import BASE64, DAY, INSTANT, SECONDS
from ottla.streams.types.serde import Serde
from ottla.streams.types.struct import Choice, Pair, Struct, WindowedKey
from ottla.streams.types.type import (
    Array,
    Bytes,
    Day,
    Dictionary,
    Instant,
    Integer,
    Nullable,
    Text,
    Type,
)
from ottla.streams.types.walk import has_anything, has_odd_names, named_parts, within

_WIDTHS = {"short": 2, "integer": 4, "long": 8}
_CORRUPT = "_unreadable"
# Nothing is guessed, and no zone but UTC is anybody's.
_JSON = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "timeZone": "UTC",
    "allowSingleQuotes": "false",
}
_WHITE = " \t\r\n"  # to JSON
# What Spark may have made of something that is no text.
_NO_TEXT = r'^(?:-?[0-9]|true$|false$|[{\[]|"(?:NaN|[+-]?Infinity|[+-]?INF)"$)'
_READ_AS_TEXT = (Text, Bytes, Choice, Instant, Day)
_FIRST, _LAST = "0001-01-01", "9999-12-31"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A value, and the reason why there is none: null where there is none to give."""

    value: Column
    reason: Column


def decodable(serde: Serde) -> bool:
    """Return whether Columns can read it."""
    if serde.format != "json":
        return serde.format in ("string", "bytes", "boolean", *_WIDTHS)
    return not (has_anything(serde.type) or has_odd_names(serde.type) or any(map(_odd, within(serde.type))))


def _odd(type: Type) -> bool:
    """Whether Spark cannot make one: it cannot call a factory, nor tell a field that is null from one that is not
    there, nor put entries in order.
    """
    if isinstance(type, Struct):
        return any(
            each.factory is not None or (each.default is not None and isinstance(each.type, Nullable))
            for each in type.fields
        )
    return (isinstance(type, Array) and type.is_set) or (isinstance(type, Dictionary) and type.is_sorted)


def parsed(serde: Serde, data: Column) -> Column:
    """Return what has to be computed once, before `decoded` looks at it from several sides."""
    return once(_read(data, _read_type(serde.type))) if serde.format == "json" else data


def _read(data: Column, type: DataType) -> Column:
    # Spark reads nothing but objects at the top; and what is not the whole of the text it would not miss.
    wrapped = F.concat(F.lit('{"it":'), data.cast("string"), F.lit("}"))
    schema = StructType([StructField("it", type), StructField(_CORRUPT, StringType())])
    return F.from_json(wrapped, schema, _JSON)


def _read_type(type: Type, text: DataType | None = None) -> DataType:
    """What Spark reads JSON of a type as; `text` is what it reads for a text."""
    if isinstance(type, _READ_AS_TEXT):
        return text or StringType()
    if isinstance(type, Integer):
        return LongType()  # Spark takes 200 for a byte
    if isinstance(type, Nullable):
        return _read_type(type.of, text)
    if isinstance(type, Array):
        return ArrayType(_read_type(type.of, text))
    if isinstance(type, Dictionary):
        return MapType(StringType(), _read_type(type.value, text))
    if isinstance(type, Struct | Pair | WindowedKey):
        return StructType([StructField(name, _read_type(part, text)) for name, part in named_parts(type)])
    return spark_type(type)


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
    return _json(serde.type, data, found)


def _wrong_size(data: Column, name: str) -> Column:
    return F.concat(F.lit("its "), F.octet_length(data).cast("string"), F.lit(f" bytes are no {name}"))


def _integer(serde: Serde, data: Column) -> Decoded:
    width = _WIDTHS[serde.format]
    fine = F.octet_length(data) == width
    number = F.conv(F.hex(data), 16, -10).cast("bigint")
    if width < 8:
        number = F.when(number >= 1 << 8 * width - 1, number - (1 << 8 * width)).otherwise(number)
    reason = F.when(~fine, _wrong_size(data, serde.format))
    assert isinstance(serde.type, Integer)
    bits = serde.type.bits
    if bits < 8 * width:
        fits = number.between(-(1 << bits - 1), (1 << bits - 1) - 1)
        reason = F.coalesce(reason, F.when(~fits, F.lit(f"it does not fit into {bits} bits")))
        fine = fine & fits
    return Decoded(F.when(fine, number).cast(spark_type(serde.type)), reason)


def _json(type: Type, data: Column, found: Column) -> Decoded:
    whole, text = found.getField("it"), data.cast("string")
    wrong = [
        (~F.is_valid_utf8(text), "it is not JSON: its bytes are not UTF-8"),
        (found.getField(_CORRUPT).isNotNull(), "it is not JSON of the type that is wanted"),
        (whole.isNull(), "it is not JSON of the type that is wanted"),
        *_faults(type, whole, ""),
    ]
    reasons = [F.when(fault, F.lit(words)) for fault, words in wrong]
    if any(isinstance(each, (*_READ_AS_TEXT, Dictionary)) for each in within(type)):
        # What is read again is a column of its own for as long as it is looked at from several sides.
        again = F.transform(
            F.array(_read(data, _read_type(type, VariantType()))), lambda each: _told(type, each)
        )
        reasons.append(F.when(_doubtful(type, text, whole), again.getItem(0)))
    # A null of JSON's is as good as one of Kafka's.
    there = data.isNotNull() & (F.btrim(text, F.lit(_WHITE)) != "null")
    return Decoded(F.when(there, filled(type, whole)), F.when(there, F.coalesce(*reasons)))


def _doubtful(type: Type, text: Column, found: Column) -> Column:
    """Whether something was perhaps no text, or none that UTF-8 has bytes for."""
    doubts = [fault for fault, _ in _looked_into(type, found, "", _maybe_no_text)]
    escaped = F.contains(text, F.lit("\\ud")) | F.contains(text, F.lit("\\uD"))
    for each in doubts:
        escaped = escaped | F.coalesce(each, F.lit(False))
    return escaped


def _told(type: Type, again: Column) -> Column:
    """What is wrong with something that was read so that texts can be told from others; null if nothing."""
    wrong = [(again.getField(_CORRUPT).isNotNull(), "it is not JSON of the type that is wanted")]
    wrong += list(_looked_into(type, again.getField("it"), "", _no_text))
    return F.coalesce(*(F.when(fault, F.lit(words)) for fault, words in wrong), F.lit(None).cast("string"))


# The faults of a scalar: a condition on it, and words.
Faults = Callable[[Type, Column, str], Iterator[tuple[Column, str]]]


def _faults(type: Type, found: Column, path: str) -> Iterator[tuple[Column, str]]:
    """What may be wrong with something that Spark has read: of what is not null, what should not be."""
    return _looked_into(type, found, path, _wrong_scalar, _missing)


def _nothing(type: Type, found: Column, path: str) -> Iterator[tuple[Column, str]]:
    yield from ()


def _looked_into(
    type: Type, found: Column, path: str, scalar: Faults, missing: Faults = _nothing
) -> Iterator[tuple[Column, str]]:
    """What is wrong with a value, part by part."""
    if isinstance(type, Nullable):
        yield from _looked_into(type.of, found, path, scalar, missing)
    elif isinstance(type, Array):
        inside = _inside(lambda fault: F.exists(found, fault), type.of, f"{path}[]", scalar, missing)
        yield from inside
    elif isinstance(type, Dictionary):
        names = F.map_keys(found)
        if isinstance(type.key, Choice):
            yield from _inside(lambda fault: F.exists(names, fault), type.key, f"{path}{{}}", scalar, missing)
        values = F.map_values(found)
        yield from _inside(lambda fault: F.exists(values, fault), type.value, f"{path}{{}}", scalar, missing)
    elif isinstance(type, Struct):
        for field in type.fields:
            name, part = f"{path}.{field.name}" if path else field.name, found.getField(field.name)
            if field.required:
                yield from (
                    (found.isNotNull() & fault, words) for fault, words in missing(field.type, part, name)
                )
            yield from _looked_into(field.type, part, name, scalar, missing)
    elif isinstance(type, Pair | WindowedKey):
        for n, (name, of) in enumerate(named_parts(type)):
            part, at = found.getField(name), f"{path or 'it'}[{n}]"
            yield from ((found.isNotNull() & fault, words) for fault, words in missing(of, part, at))
            yield from _looked_into(of, part, at, scalar, missing)
    else:
        yield from scalar(type, found, path)


def _inside(
    any_of: Callable[[Callable[[Column], Column]], Column],
    of: Type,
    path: str,
    scalar: Faults,
    missing: Faults,
) -> Iterator[tuple[Column, str]]:
    """The faults that any element may have, each as one condition on the whole."""

    def faults(each: Column) -> list[tuple[Column, str]]:
        return [*_looked_into(of, each, path, scalar, missing), *missing(of, each, path)]

    def nth(n: int) -> Callable[[Column], Column]:
        return lambda each: F.coalesce(faults(each)[n][0], F.lit(False))

    for n, (_, words) in enumerate(faults(F.lit(None))):
        yield any_of(nth(n)), words


def _missing(type: Type, found: Column, path: str) -> Iterator[tuple[Column, str]]:
    if not isinstance(type, Nullable):
        yield found.isNull(), f"{path or 'it'} is missing"


def _wrong_scalar(type: Type, found: Column, path: str) -> Iterator[tuple[Column, str]]:
    name = path or "it"
    if isinstance(type, Choice):
        yield ~found.isin(*type.texts()), f"{name} is none of {', '.join(type.texts())}"
    elif isinstance(type, Integer) and type.bits < 64:
        half = 1 << type.bits - 1
        yield ~found.between(-half, half - 1), f"{name} does not fit into {type.bits} bits"
    elif isinstance(type, Bytes):
        yield ~F.rlike(found, F.lit(rf"^(?:{BASE64})\z")), f"{name} is no {type}"
    elif isinstance(type, Day):
        yield found.isNotNull() & _day(found).isNull(), f"{name} is no {type}"
    elif isinstance(type, Instant):
        yield found.isNotNull() & _instant(found).isNull(), f"{name} is no {type}"


def _maybe_no_text(type: Type, found: Column, path: str) -> Iterator[tuple[Column, str]]:
    # A time may be a number, and what is a date is no number.
    if isinstance(type, Text | Bytes | Choice):
        yield F.rlike(found, F.lit(_NO_TEXT)), path


def _no_text(type: Type, found: Column, path: str) -> Iterator[tuple[Column, str]]:
    if isinstance(type, Text | Bytes | Choice):
        kind = F.schema_of_variant(found)
        yield ~kind.isin("STRING", "VOID"), f"{path or 'it'} is not text"


def _day(text: Column) -> Column:
    """The date that a text says, or null."""
    found = text.try_cast("date")
    fits = F.rlike(text, F.lit(rf"^{DAY}\z")) & (text >= _FIRST)
    return F.when(fits, found)


def _instant(text: Column) -> Column:
    """The time that a text says, or null."""
    found = F.when(F.rlike(text, F.lit(rf"^{INSTANT}\z")), text.try_cast("timestamp")).when(
        F.rlike(text, F.lit(rf"^{SECONDS}\z")), F.timestamp_seconds(text.try_cast("bigint"))
    )
    year = F.year(found)
    return F.when((year >= 1) & (year <= 9999), found)


def filled(type: Type, found: Column) -> Column:
    """Return what was read as it is to be: with the defaults of fields that were not there, times as times."""
    if isinstance(type, Nullable):
        return filled(type.of, found)
    if isinstance(type, Struct | Pair | WindowedKey):
        return F.when(found.isNotNull(), F.struct(*_filled_parts(type, found)))
    if isinstance(type, Array):
        return F.transform(found, lambda each: filled(type.of, each)) if _needs_filling(type.of) else found
    if isinstance(type, Dictionary):
        found = _without_doubles(found)
        if _needs_filling(type.value):
            found = F.transform_values(found, lambda _, each: filled(type.value, each))
        return found
    if isinstance(type, Integer) and type.bits < 64:
        return found.try_cast(spark_type(type))
    if isinstance(type, Bytes):
        return F.when(F.rlike(found, F.lit(rf"^(?:{BASE64})\z")), F.unbase64(found))
    if isinstance(type, Day):
        return _day(found)
    if isinstance(type, Instant):
        return _instant(found)
    return found


def _filled_parts(type: Type, found: Column) -> Iterator[Column]:
    defaults = {each.name: each.default for each in type.fields} if isinstance(type, Struct) else {}
    for name, of in named_parts(type):
        part = filled(of, found.getField(name))
        default = defaults.get(name)
        if default is not None:
            part = F.coalesce(part, _literal(of, default))
        yield part.alias(name)


def _needs_filling(type: Type) -> bool:
    return any(
        isinstance(each, Bytes | Day | Instant | Dictionary)
        or (isinstance(each, Integer) and each.bits < 64)
        or (isinstance(each, Struct) and any(field.default is not None for field in each.fields))
        for each in within(type)
    )


def _without_doubles(found: Column) -> Column:
    """A dict in which the last of the entries of one name counts, as it does to Python."""
    names = F.array_distinct(F.map_keys(found))

    def last(name: Column) -> Column:
        same = F.filter(F.map_entries(found), lambda each: each.getField("key") == name)
        return F.element_at(same, -1).getField("value")

    once_each = F.map_from_arrays(names, F.transform(names, last))
    return F.when(F.size(names) < F.size(found), once_each).otherwise(found)


def _literal(type: Type, default: object) -> Column:
    text = encoder(Serde(type, "json"))(default).decode()
    wrapped = F.lit(f'{{"it":{text}}}')
    read = F.from_json(wrapped, StructType([StructField("it", _read_type(type))]), _JSON).getField("it")
    return filled(type, read).cast(spark_type(type))
