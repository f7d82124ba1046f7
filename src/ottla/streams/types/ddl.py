"""Spark's own ways to say a type: a DDL text, and the JSON of a schema."""

import re
from typing import Any

from ottla.streams.errors import TypeMismatch
from ottla.streams.types.struct import Field, Struct
from ottla.streams.types.type import (
    Array,
    Boolean,
    Bytes,
    Day,
    Dictionary,
    Exact,
    Instant,
    Integer,
    Nullable,
    Real,
    Text,
    Type,
)

_WORDS: dict[str, Type] = {
    "string": Text(),
    "binary": Bytes(),
    "boolean": Boolean(),
    "tinyint": Integer(8),
    "byte": Integer(8),
    "smallint": Integer(16),
    "short": Integer(16),
    "int": Integer(32),
    "integer": Integer(32),
    "bigint": Integer(64),
    "long": Integer(64),
    "float": Real(32),
    "real": Real(32),
    "double": Real(64),
    "decimal": Exact(10, 0),
    "timestamp": Instant(),
    "date": Day(),
}
_TOKEN = re.compile(r"\s*(?:(`[^`]+`|\w+)|([<>(),:]))")


def parse_ddl(text: str) -> Type:
    """Return the type that a text means: a type's name, or fields as of a table ("name string, age int")."""
    tokens = _tokens(text)
    if len(tokens) > 1 and tokens[1] not in ("<", "("):
        type, rest = _fields(text, tokens, end=None)
    else:
        type, rest = _type(text, tokens)
    if rest:
        raise _wrong(text, f"{rest[0]!r} is too much")
    return type


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise _wrong(text, f"{text[at:].strip()[:1]!r} is not expected")
        found.append(match[1] or match[2])
        at = match.end()
    return found


def _wrong(text: str, why: str) -> TypeMismatch:
    return TypeMismatch(
        f"{text!r} is no type of Spark's: {why}", hint="for example 'name string, tags array<string>'"
    )


def _type(text: str, tokens: list[str]) -> tuple[Type, list[str]]:
    if not tokens:
        raise _wrong(text, "it ends too early")
    word, rest = tokens[0].lower(), tokens[1:]
    if word == "struct":
        return _fields(text, _taken(text, rest, "<"), end=">")
    if word == "array":
        of, rest = _type(text, _taken(text, rest, "<"))
        return Array(Nullable(of)), _taken(text, rest, ">")
    if word == "map":
        key, rest = _type(text, _taken(text, rest, "<"))
        value, rest = _type(text, _taken(text, rest, ","))
        return Dictionary(key, Nullable(value)), _taken(text, rest, ">")
    if word == "decimal" and rest[:1] == ["("]:
        precision, rest = rest[1], rest[2:]
        scale = "0"
        if rest[:1] == [","]:
            scale, rest = rest[1], rest[2:]
        return Exact(int(precision), int(scale)), _taken(text, rest, ")")
    if word not in _WORDS:
        raise _wrong(text, f"there is no type {word}")
    return _WORDS[word], rest


def _taken(text: str, tokens: list[str], wanted: str) -> list[str]:
    if tokens[:1] != [wanted]:
        raise _wrong(text, f"{wanted!r} is missing")
    return tokens[1:]


def _fields(text: str, tokens: list[str], end: str | None) -> tuple[Type, list[str]]:
    fields = []
    while True:
        if not tokens:
            raise _wrong(text, "it ends too early")
        name, tokens = tokens[0].strip("`"), tokens[1:]
        if tokens[:1] == [":"]:
            tokens = tokens[1:]
        type, tokens = _type(text, tokens)
        required = [each.upper() for each in tokens[:2]] == ["NOT", "NULL"]
        if required:
            tokens = tokens[2:]
        fields.append(Field(name, type if required else Nullable(type), None, required))
        if tokens[:1] == [","]:
            tokens = tokens[1:]
            continue
        return Struct(tuple(fields)), (_taken(text, tokens, end) if end else tokens)


def parse_json(given: Any) -> Type:
    """Return the type of what Spark's DataType.jsonValue() returns."""
    if isinstance(given, str):
        return parse_ddl(given)
    if given["type"] == "struct":
        fields = []
        for each in given["fields"]:
            inside = parse_json(each["type"])
            fields.append(
                Field(
                    each["name"], Nullable(inside) if each["nullable"] else inside, None, not each["nullable"]
                )
            )
        return Struct(tuple(fields))
    if given["type"] == "array":
        of = parse_json(given["elementType"])
        return Array(Nullable(of) if given["containsNull"] else of)
    if given["type"] == "map":
        value = parse_json(given["valueType"])
        return Dictionary(
            parse_json(given["keyType"]), Nullable(value) if given["valueContainsNull"] else value
        )
    raise TypeMismatch(f"{given!r} is not a type that records can have")
