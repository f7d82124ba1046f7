"""What types are made of: looking for a type inside of another, and replacing one there."""

from collections.abc import Iterator
from dataclasses import replace

from ottla.streams.types.struct import Anything, Choice, Pair, Struct, WindowedKey
from ottla.streams.types.type import Array, Dictionary, Integer, Nullable, Text, Type


def within(type: Type) -> Iterator[Type]:
    """Yield a type and all that it is made of."""
    yield type
    if isinstance(type, Nullable | Array | WindowedKey):
        yield from within(type.of)
    elif isinstance(type, Dictionary):
        yield from within(type.key)
        yield from within(type.value)
    elif isinstance(type, Struct):
        for field in type.fields:
            yield from within(field.type)
    elif isinstance(type, Pair):
        for part in type.parts:
            yield from within(part)


def named_parts(type: Type) -> list[tuple[str, Type]]:
    """Return the names and the types of what a struct, a pair or a windowed key is made of."""
    if isinstance(type, Struct):
        return [(each.name, each.type) for each in type.fields]
    if isinstance(type, Pair):
        return [(f"_{n}", each) for n, each in enumerate(type.parts, 1)]
    assert isinstance(type, WindowedKey)
    return [("key", type.of), ("start", Integer()), ("end", Integer())]


def has_anything(type: Type) -> bool:
    """Return whether there is something in it of which nothing is known."""
    return any(isinstance(each, Anything) for each in within(type))


def has_odd_names(type: Type) -> bool:
    """Return whether there is a dict in it whose keys are not text, for which JSON has no names."""
    return any(
        isinstance(each, Dictionary) and not isinstance(each.key, Text | Choice) for each in within(type)
    )


def has_spellings(type: Type) -> bool:
    """Return whether what is equal may look different: the entries of objects and dicts stand in any order."""
    return any(isinstance(each, Anything | Dictionary) for each in within(type))


def as_key(type: Type) -> Type:
    """Return the type as keys have it: what is equal is written alike, however it was spelled."""
    if not has_spellings(type):
        return type
    if isinstance(type, Anything):
        return Anything(by_value=True)
    if isinstance(type, Nullable | Array | WindowedKey):
        return replace(type, of=as_key(type.of))
    if isinstance(type, Dictionary):
        return Dictionary(as_key(type.key), as_key(type.value), is_sorted=True)
    if isinstance(type, Struct):
        return replace(type, fields=tuple(replace(each, type=as_key(each.type)) for each in type.fields))
    assert isinstance(type, Pair)
    return replace(type, parts=tuple(as_key(each) for each in type.parts))
