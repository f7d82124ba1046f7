"""JSON as plain values of a type, or Unreadable with the reason. What is read here `lowering/decoding.py` reads alike.

J1  Nothing is guessed: a number is not text, text is not a number. The exceptions are what JSON cannot say: a float may
    be "NaN" or "Infinity" (Jackson writes that), a Decimal may be text, a time may be ISO 8601 or seconds since 1970.
J2  A field that is not there is its default. A field that is null is None where it may be None; else it is as if it
    were not there.
"""

import base64
import datetime
import decimal
import json
import re
from typing import Any

from ottla.streams.errors import TypeMismatch, Unreadable
from ottla.streams.types.struct import Anything, Choice, Pair, Struct, WindowedKey
from ottla.streams.types.type import (
    Array,
    Bytes,
    Day,
    Dictionary,
    Exact,
    Instant,
    Nullable,
    Real,
    Type,
    sorted_set,
)
from ottla.streams.types.walk import named_parts

# These are patterns of Java's as well, which Spark looks with. An offset beyond 18 hours is nobody's.
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
OFFSET = r"Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00"
INSTANT = rf"{DAY}(?:[T ]{TIME}(?:{OFFSET})?)?"
SECONDS = r"-?[0-9]{1,12}"
BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
NOT_FINITE = ("NaN", "+INF", "INF", "+Infinity", "Infinity", "-INF", "-Infinity")

_DAY, _INSTANT, _SECONDS, _BASE64 = (re.compile(each) for each in (DAY, INSTANT, SECONDS, BASE64))
_TIMES = re.compile(
    r"(?P<day>[0-9-]{10})(?:[T ](?P<hour>..):(?P<minute>..)(?::(?P<second>..)(?:\.(?P<rest>[0-9]+))?)?(?P<offset>.*))?"
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_HALF_UP = decimal.Context(prec=2000, rounding=decimal.ROUND_HALF_UP)


def json_value(type: Type, data: bytes) -> Any:
    """Return what the bytes say as what Spark takes; None for a null."""
    try:
        found = json.loads(str(data, "utf-8"), parse_float=decimal.Decimal, parse_constant=float)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not JSON: {error}") from None
    return None if found is None else _heard(type, found, "")


def _heard(type: Type, given: Any, path: str) -> Any:
    if isinstance(type, Nullable):
        return None if given is None else _heard(type.of, given, path)
    if isinstance(type, Anything):
        return _anything(type, given, path)
    if given is None:
        raise Unreadable(f"{path or 'it'} is missing")
    if isinstance(type, Struct):
        return _struct(type, given, path)
    if isinstance(type, Pair | WindowedKey):
        _check(given, dict, path, "an object")
        return tuple(_heard(part, given.get(name), _under(path, name)) for name, part in named_parts(type))
    if isinstance(type, Array):
        _check(given, list, path, "a list")
        found = [_heard(type.of, each, f"{path}[{n}]") for n, each in enumerate(given)]
        return sorted_set(found) if type.is_set else found
    if isinstance(type, Dictionary):
        _check(given, dict, path, "an object")
        return type.ordered(
            {
                _heard(type.key, key, _under(path, key)): _heard(type.value, value, _under(path, key))
                for key, value in given.items()
            }
        )
    try:
        return _scalar(type, given)
    except (TypeError, ValueError, AttributeError, ArithmeticError, TypeMismatch) as error:
        reason = error.args[0] if isinstance(error, TypeMismatch) else f"{given!r:.100} is no {type}"
        raise Unreadable(f"{path or 'it'}: {reason}") from None
    except Unreadable as error:
        raise Unreadable(f"{path or 'it'} {error.args[0]}") from None


def _struct(type: Struct, given: Any, path: str) -> tuple[Any, ...]:
    _check(given, dict, path, "an object")
    parts = []
    for field in type.fields:
        found = given.get(field.name)
        absent = field.name not in given if isinstance(field.type, Nullable | Anything) else found is None
        if absent and not field.required:
            parts.append(_missing(field, _under(path, field.name)))
        else:
            parts.append(_heard(field.type, found, _under(path, field.name)))
    return tuple(parts)


def _missing(field: Any, path: str) -> Any:
    default = field.missing()
    try:
        return None if default is None else field.type.dump(default)
    except TypeMismatch as error:
        raise Unreadable(f"{path} is missing, and its default is not of its type: {error.args[0]}") from None


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check(given: Any, kind: type[Any], path: str, wanted: str) -> None:
    if not isinstance(given, kind):
        raise Unreadable(f"{path or 'it'} is not {wanted}")


def _anything(type: Anything, given: Any, path: str) -> Any:
    try:
        return type.dump(_with_floats(given))
    except TypeMismatch as error:
        raise Unreadable(f"{path or 'it'}: {error.args[0]}") from None


def _with_floats(given: Any) -> Any:
    """What Python's own reader would have given."""
    if isinstance(given, decimal.Decimal):
        return float(given)
    if isinstance(given, list):
        return [_with_floats(each) for each in given]
    if isinstance(given, dict):
        return {name: _with_floats(each) for name, each in given.items()}
    return given


def _scalar(type: Type, given: Any) -> Any:
    if isinstance(type, Bytes):
        if not _BASE64.fullmatch(given):
            raise ValueError
        return base64.b64decode(given)
    if isinstance(type, Instant):
        return instant(str(given) if isinstance(given, int) and not isinstance(given, bool) else given)
    if isinstance(type, Day):
        if not _DAY.fullmatch(given):
            raise ValueError
        return datetime.date.fromisoformat(given)
    if isinstance(type, Exact):
        return _exact(type, given)
    if isinstance(type, Real):
        return _real(type, given)
    if isinstance(type, Choice):
        if given not in type.texts():
            raise Unreadable(f"is {given!r:.100}, which is none of {', '.join(type.texts())}")
        return given
    return type.dump(given)


def instant(given: str) -> datetime.datetime:
    """Return the time that a text says; ValueError or OverflowError where it says none."""
    if _SECONDS.fullmatch(given):
        return _EPOCH + datetime.timedelta(seconds=int(given))
    if not _INSTANT.fullmatch(given):
        raise ValueError
    parts = _TIMES.fullmatch(given)
    assert parts is not None
    micros = int((parts["rest"] or "0").ljust(6, "0")[:6])
    hour, minute, second = (int(parts[each] or 0) for each in ("hour", "minute", "second"))
    day = datetime.date.fromisoformat(parts["day"])
    time = datetime.time(hour, minute, second, micros, tzinfo=datetime.UTC)
    return datetime.datetime.combine(day, time) - _offset(parts["offset"])


def _offset(said: str | None) -> datetime.timedelta:
    if not said or said == "Z":
        return datetime.timedelta()
    ahead = datetime.timedelta(hours=int(said[1:3]), minutes=int(said[4:6]))
    return -ahead if said[0] == "-" else ahead


def _exact(type: Exact, given: Any) -> Any:
    if isinstance(given, str):
        given = given.replace(",", "")
        if not _NUMBER.fullmatch(given):
            raise ValueError
        given = decimal.Decimal(given)
    if isinstance(given, decimal.Decimal) and given.adjusted() < type.precision:
        given = given.quantize(decimal.Decimal(1).scaleb(-type.scale), context=_HALF_UP)
    return type.dump(given)


def _real(type: Real, given: Any) -> Any:
    if isinstance(given, str):
        if given not in NOT_FINITE:
            raise ValueError
        given = float(given)
    elif isinstance(given, decimal.Decimal):
        given = float(given)
    return type.dump(given)
