"""Messages of every kind, filled from a seed with values that any implementation of the protocol accepts."""

import random
from typing import Any

from ottla.wire.field import Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.primitive import Primitive


class Sampler:
    """Fills messages. The same seed fills them the same way."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def message(self, cls: type[Message], version: int) -> Message:
        """A message whose fields are those of the version."""
        message: Message = self.struct(cls, version)
        return message

    def struct(self, cls: type[Struct], version: int) -> Any:
        """A struct, and all that is in it."""
        values: dict[str, Any] = {}
        for field in fields_of(cls):
            if version not in field.versions or (field.tag is not None and self.random.random() < 0.5):
                continue
            if version in field.nullable and self.random.random() < 0.2:
                values[field.name] = None
            elif field.array:
                counts = (0, 1, 2) if field.is_struct else (0, 1, 3, 130)
                values[field.name] = [self.value(field, version) for _ in range(self.random.choice(counts))]
            else:
                values[field.name] = self.value(field, version)
                # A tagged struct with nothing but defaults is one that Kafka leaves out.
                if field.is_struct and field.tag is not None and values[field.name] == field.kind():
                    del values[field.name]
        return cls(**values)

    def value(self, field: Field, version: int) -> Any:
        """One value of the field's type."""
        kind = field.kind
        if not isinstance(kind, Primitive):
            return self.struct(kind, version)
        match kind.name:
            case "bool":
                return self.random.random() < 0.5
            case "float64":
                return self.random.random()
            case "uuid":
                return self.random.randbytes(16)
            case "string":
                return "x" * self.random.choice((0, 1, 3, 80, 130)) + self.random.choice(("", "é"))
            case "bytes" | "records":
                return self.random.randbytes(self.random.choice((0, 1, 10, 200, 20000)))
        return self.random.choice((0, 1, 3)) if field.name == "error_code" else self.random.randrange(1, 90)
