"""What types are made of: looking for a type inside of another, and replacing one there."""

from collections.abc import Callable, Iterator
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


def as_key(type: Type) -> Type:
    """Return the type as keys have it: what is equal is written alike, whatever its numbers were written as."""
    return _replaced(type, lambda _: Anything(by_value=True)) if has_anything(type) else type


def _replaced(type: Type, other: Callable[[Type], Type]) -> Type:
    if isinstance(type, Anything):
        return other(type)
    if isinstance(type, Nullable | Array | WindowedKey):
        return replace(type, of=_replaced(type.of, other))
    if isinstance(type, Dictionary):
        return replace(type, key=_replaced(type.key, other), value=_replaced(type.value, other))
    if isinstance(type, Struct):
        return replace(
            type, fields=tuple(replace(each, type=_replaced(each.type, other)) for each in type.fields)
        )
    if isinstance(type, Pair):
        return replace(type, parts=tuple(_replaced(each, other) for each in type.parts))
    return type
