"""From declarations to functions: the source of a constructor, a decoder or an encoder, compiled.

The source of a codec can be read: `source_of(ProduceRequest, "decoder", 9)`.
"""

from collections.abc import Callable
from typing import Any

from ottla.wire.decoding import decoder_source
from ottla.wire.encoding import encoder_source
from ottla.wire.field import UNSET
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.source import Source


def codec_source(cls: type[Message], what: str, version: int) -> Source:
    """The source of one codec, with the names it needs."""
    if what == "decoder":
        return decoder_source(cls, version)
    return encoder_source(cls, version, in_parts=what == "parts_encoder")


def compile_codec(cls: type[Message], what: str, version: int) -> Callable[..., Any]:
    """One codec of a message at a version."""
    return codec_source(cls, what, version).load(f"{cls.__module__}.{cls.__qualname__} v{version} {what}")


def source_of(cls: type[Message], what: str, version: int) -> str:
    """The text of a codec, to read when debugging or measuring."""
    return codec_source(cls, what, version).text()


def compile_maker(cls: type[Struct]) -> Callable[..., Any]:
    """A function that does what the constructor does, without the way through the type, which costs as much again."""
    source = Source("make")
    parameters, stores = _construction(cls, source)
    source.bind("new", object.__new__)
    source.line(f"def make(*, {parameters}):")
    with source.block():
        made = source.new(cls)
        for store in stores:
            source.line(f"{made}.{store}")
        source.line(f"return {made}")
    return source.load(f"{cls.__module__}.{cls.__qualname__} maker")


def compile_init(cls: type[Struct]) -> Callable[..., None]:
    """The constructor of a struct: keywords only, defaults as declared."""
    source = Source("construct")
    parameters, stores = _construction(cls, source)
    source.line(f"def construct(self, *, {parameters}):")
    with source.block():
        for store in stores:
            source.line(f"self.{store}")
    return source.load(f"{cls.__module__}.{cls.__qualname__} constructor")


def _construction(cls: type[Struct], source: Source) -> tuple[str, list[str]]:
    """The parameters of a constructor, and what it stores."""
    parameters = []
    stores = []
    for field in fields_of(cls):
        if field.default_is_fresh:
            fresh = "[]" if field.array else source.bind(f"new_{field.name}", field.kind) + "()"
            parameters.append(f"{field.name}=UNSET")
            stores.append(f"{field.name} = {fresh} if {field.name} is UNSET else {field.name}")
        else:
            parameters.append(f"{field.name}={field.default!r}")
            stores.append(f"{field.name} = {field.name}")
    source.bind("UNSET", UNSET)
    return ", ".join([*parameters, "unknown_tags=None"]), [*stores, "unknown_tags = unknown_tags"]
