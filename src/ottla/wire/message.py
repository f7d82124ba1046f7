"""A message class is its schema: one class serves every version of a message.

    class HeartbeatRequest(Message, api=12, versions="0-4", flexible="4+"):
        group_id: String
        generation_id: Int32
        member_id: String
        group_instance_id: NullableString = since(3, default=None)

W1  decode(encode(m, v), v) == m, for every message m that version v can express.
W2  Whatever the bytes, decoding returns a message or raises ProtocolError.

Declaring costs a class and its slots. The constructor, and the decoder and encoder of each version, are compiled
to straight-line source when first used, and kept.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Self, cast

from ottla.wire.errors import ProtocolError
from ottla.wire.field import UNSET, Field, resolve, version_range

Decoder = Callable[[Any, int, int], tuple[Any, int]]
Encoder = Callable[[Any, bytearray], None]
PartsEncoder = Callable[[Any, list[Any]], None]


class StructType(type):
    """Turns annotated names into slots, and keeps what was declared for the compiler."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "StructType":
        """Make the class; what it declares leaves the namespace, where slots would collide with it."""
        if "__slots__" not in namespace:
            declared = {each: (kind, namespace.pop(each, UNSET)) for each, kind in _annotations(namespace)}
            namespace["__slots__"] = tuple(declared)
            namespace["__declared__"] = declared
            namespace["__fields__"] = None
            namespace["__init__"] = _first_init
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> None:
        super().__init__(name, bases, namespace)
        if options:
            cls._describe(**options)

    def _describe(cls, versions: str, api: int | None = None, flexible: str = "none") -> None:
        message = cast(Any, cls)
        message.api_key = api
        message.versions = version_range(versions)
        first = version_range(flexible)
        message.flexible = first[0] if first else None
        message.__codecs__ = {}


def _annotations(namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    if sys.version_info >= (3, 14):
        import annotationlib

        annotate = annotationlib.get_annotate_from_class_namespace(namespace)
        if annotate is not None:
            return list(annotationlib.call_annotate_function(annotate, annotationlib.Format.VALUE).items())
    return list(namespace.get("__annotations__", {}).items())


def _first_init(self: Any, **values: Any) -> None:
    """Compile the class's constructor, put it in place of this one, and call it."""
    from ottla.wire.compiling import compile_init

    cls = type(self)
    cls.__init__ = compile_init(cls)
    cls.__init__(self, **values)


class Struct(metaclass=StructType):
    """A group of fields: a message, or a part of one. Built by keyword; every field has a default."""

    __slots__ = ("unknown_tags",)
    __hash__ = None  # type: ignore[assignment]

    unknown_tags: Mapping[int, bytes] | None

    def __init__(self, **values: Any) -> None:
        raise TypeError(f"{type(self).__name__} declares no fields")

    @classmethod
    def maker(cls) -> Callable[..., Self]:
        """A function that takes what the constructor takes and returns the struct, in half the time."""
        from ottla.wire.compiling import compile_maker

        return compile_maker(cls)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self.unknown_tags == other.unknown_tags and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __repr__(self) -> str:
        values = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
        if self.unknown_tags:
            values.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(values)})"


class Message(Struct):
    """A whole message: a request, a response, a header, or a record of Kafka's state."""

    __slots__ = ()

    api_key: int | None
    versions: range
    flexible: int | None

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview, version: int) -> Self:
        """Read a buffer that holds this message and nothing else."""
        if isinstance(data, memoryview):
            data = bytes(data)
        message, pos = cls.decoder(version)(data, 0, len(data))
        if pos != len(data):
            raise ProtocolError(f"{cls.__name__} v{version} ends {len(data) - pos} bytes before its buffer")
        return cast(Self, message)

    def encode(self, version: int) -> bytes:
        """The bytes of this message; ProtocolError when the version cannot express it."""
        out = bytearray()
        self.encoder(version)(self, out)
        return bytes(out)

    @classmethod
    def decoder(cls, version: int) -> Decoder:
        """A function (buf, pos, end) -> (message, position after it).

        Bytes between that position and `end` are left to the caller: a request may have grown a tail, and
        Kafka ignores it. Records come as views of `buf`, everything else is copied.
        """
        return cast(Decoder, cls._codec("decoder", version))

    @classmethod
    def encoder(cls, version: int) -> Encoder:
        """A function (message, out) that appends the message to the bytearray `out`."""
        return cast(Encoder, cls._codec("encoder", version))

    @classmethod
    def parts_encoder(cls, version: int) -> PartsEncoder:
        """A function (message, parts) that appends buffers to the list `parts`, records among them uncopied."""
        return cast(PartsEncoder, cls._codec("parts_encoder", version))

    @classmethod
    def _codec(cls, what: str, version: int) -> Callable[..., Any]:
        codecs: dict[tuple[str, int], Callable[..., Any]] = cls.__codecs__  # type: ignore[attr-defined]
        codec = codecs.get((what, version))
        if codec is None:
            if version not in cls.versions:
                raise ProtocolError(f"{cls.__name__} has no version {version}")
            from ottla.wire.compiling import compile_codec
            from ottla.wire.swift import swift_decoder

            codec = compile_codec(cls, what, version)
            if what == "decoder":
                codec = swift_decoder(cls, version, codec)
            codecs[what, version] = codec
        return codec


def fields_of(cls: type[Struct]) -> tuple[Field, ...]:
    """The resolved fields of a struct, in the order of the wire."""
    struct = cast(Any, cls)
    if struct.__fields__ is None:
        module = sys.modules[cls.__module__]

        def lookup(path: str) -> Any:
            found: Any = module
            for name in path.split("."):
                found = getattr(found, name)
            return found

        struct.__fields__ = tuple(
            resolve(name, kind, given, lookup) for name, (kind, given) in struct.__declared__.items()
        )
    return cast(tuple[Field, ...], struct.__fields__)
