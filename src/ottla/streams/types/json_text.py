"""Values as JSON, in the bytes that Spark's `to_json` writes.

So it does not matter who writes a record. Numbers look as Java writes them. What JSON has no number for is text, as
Jackson has it, the JSON library of Kafka Connect and of Spark: "NaN", "Infinity" and "-Infinity".
"""

import base64
import datetime
import json
import math
import re
import struct
from collections.abc import Iterable
from typing import Any

from ottla.streams.errors import TypeMismatch
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
    Text,
    Type,
)
from ottla.streams.types.walk import named_parts

_ESCAPED = re.compile(r"\\(?:u00[0-9a-f]{2}|.)")
_SHORT = struct.Struct("<f")


def json_text(type: Type, given: Any) -> str:
    """Return what Spark takes, as JSON."""
    if given is None:
        return "null"
    if isinstance(type, Nullable):
        return json_text(type.of, given)
    if isinstance(type, Anything):
        return str(given)
    if isinstance(type, Real):
        return real_text(given, type.bits)
    if isinstance(type, Exact):
        return str(given)  # Java's rules for an exponent are Python's
    if isinstance(type, Array):
        return f"[{','.join(json_text(type.of, each) for each in given)}]"
    if isinstance(type, Dictionary):
        return _object((_name(type.key, key), json_text(type.value, value)) for key, value in given.items())
    if isinstance(type, Struct | Pair | WindowedKey):
        return _object(
            (name, json_text(part, each)) for (name, part), each in zip(named_parts(type), given, strict=True)
        )
    if isinstance(type, Bytes):
        given = base64.b64encode(given).decode()
    elif isinstance(type, Instant):
        given = given.astimezone(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    elif isinstance(type, Day):
        given = given.isoformat()
    return _quoted(given) if isinstance(given, str) else json.dumps(given)


def real_text(given: float, bits: int = 64) -> str:
    """Return a number as Java's Double.toString and Float.toString write it, quoted where JSON has no such number."""
    if math.isnan(given):
        return '"NaN"'
    if math.isinf(given):
        return '"Infinity"' if given > 0 else '"-Infinity"'
    if given == 0:
        return "-0.0" if math.copysign(1, given) < 0 else "0.0"
    digits, exponent = _digits(abs(given), bits)
    sign = "-" if given < 0 else ""
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 2, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits(given: float, bits: int) -> tuple[str, int]:
    """The fewest digits that say which number it is, or two if two say it better, and the exponent of the first."""
    said = repr(given) if bits == 64 else _short(given)
    mantissa, _, power = said.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + (len(whole) - 1 if whole != "0" else len(digits) - len(fraction) - 1)
    digits = digits.rstrip("0")
    if len(digits) == 1:
        two = f"{given:.1e}"
        if _read(two, bits) == given:
            digits, exponent = two[0] + two[2].rstrip("0"), int(two[4:])
    return digits, exponent


def _short(given: float) -> str:
    return next(said for count in range(9) if _read(said := f"{given:.{count}e}", 32) == given)


def _read(said: str, bits: int) -> float:
    found = float(said)
    if bits == 64:
        return found
    try:
        short: float = _SHORT.unpack(_SHORT.pack(found))[0]
    except OverflowError:
        return math.inf
    return short


def _quoted(given: str) -> str:
    # Jackson's hexadecimal digits are capitals.
    said = json.dumps(given, ensure_ascii=False)
    return said if given.isprintable() else _ESCAPED.sub(_capital, said)


def _capital(escaped: re.Match[str]) -> str:
    said = escaped[0]
    return said[:2] + said[2:].upper()


def _object(fields: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_quoted(name)}:{text}" for name, text in fields) + "}"


def _name(type: Type, key: Any) -> str:
    if isinstance(type, Text | Choice):
        return str(key)
    raise TypeMismatch(f"JSON has names, not {type}, as keys of a dict")
