"""YAML as far as results need it: mappings, lists, texts, numbers, booleans and null, in block style.

Y1  A text stands bare only when no reader of YAML 1.1 or 1.2 could take it for anything else; otherwise it is quoted
    as JSON quotes it, which YAML reads the same way.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

# A letter, then what never means anything; words that readers take for something else are listed below.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
# What JSON leaves as it is and YAML does not allow or reads as a line break.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def yaml(data: Any) -> str:
    """Return a document, with a line break at its end."""
    return "\n".join(_lines(data, "")) + "\n"


def _lines(data: Any, indent: str) -> Iterator[str]:
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from _entry(f"{indent}{_text(str(key))}:", value, indent)
    elif isinstance(data, list | tuple) and data:
        for value in data:
            if _is_nested(value):
                first, *rest = _lines(value, indent + "  ")
                yield f"{indent}- {first[len(indent) + 2 :]}"
                yield from rest
            else:
                yield f"{indent}- {_scalar(value)}"
    else:
        yield indent + _scalar(data)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if _is_nested(value):
        yield head
        yield from _lines(value, indent + "  ")
    else:
        yield f"{head} {_scalar(value)}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return _text(str(value))


def _number(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    # YAML 1.1 wants a point in a number with an exponent.
    return text if "." in text else text.replace("e", ".0e")


def _text(value: str) -> str:
    if _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
