"""The types a message field can have.

A type checker sees plain Python types. At run time each name is a `Primitive`, from which codecs are compiled: a
fixed-size one has a `struct` code, the others are a length followed by that many bytes.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

ZERO = bytes(16)


class Primitive:
    """One type of Kafka's grammar: its name there, how it is laid out, and what it is when nobody sets it."""

    __slots__ = ("code", "default", "name", "nullable", "size")

    def __init__(self, name: str, code: str | None, size: int, default: Any, nullable: bool = False) -> None:
        self.name = name
        self.code = code
        self.size = size
        self.default = default
        self.nullable = nullable

    def __repr__(self) -> str:
        return f"{self.name}?" if self.nullable else self.name


if TYPE_CHECKING:
    Int8: TypeAlias = int
    Int16: TypeAlias = int
    Int32: TypeAlias = int
    Int64: TypeAlias = int
    UInt16: TypeAlias = int
    UInt32: TypeAlias = int
    Float64: TypeAlias = float
    Bool: TypeAlias = bool
    Uuid: TypeAlias = bytes
    String: TypeAlias = str
    NullableString: TypeAlias = str | None
    Bytes: TypeAlias = bytes
    NullableBytes: TypeAlias = bytes | None
    Records: TypeAlias = bytes | bytearray | memoryview
    NullableRecords: TypeAlias = bytes | bytearray | memoryview | None
else:
    Int8 = Primitive("int8", "b", 1, 0)
    Int16 = Primitive("int16", "h", 2, 0)
    Int32 = Primitive("int32", "i", 4, 0)
    Int64 = Primitive("int64", "q", 8, 0)
    UInt16 = Primitive("uint16", "H", 2, 0)
    UInt32 = Primitive("uint32", "I", 4, 0)
    Float64 = Primitive("float64", "d", 8, 0.0)
    Bool = Primitive("bool", "?", 1, False)
    Uuid = Primitive("uuid", "16s", 16, ZERO)
    String = Primitive("string", None, 1, "")
    NullableString = Primitive("string", None, 1, "", nullable=True)
    Bytes = Primitive("bytes", None, 1, b"")
    NullableBytes = Primitive("bytes", None, 1, b"", nullable=True)
    Records = Primitive("records", None, 1, b"")
    NullableRecords = Primitive("records", None, 1, None, nullable=True)
