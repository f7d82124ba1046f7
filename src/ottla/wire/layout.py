"""What a declaration tells of a struct's bytes before any is read."""

from ottla.wire.message import Struct, fields_of


def minimum_size(cls: type[Struct], version: int, flexible: bool) -> int:
    """The fewest bytes one such struct takes; at least 1, so that a count is always bounded by the bytes left."""
    return max(_size(cls, version, flexible), 1)


def _size(cls: type[Struct], version: int, flexible: bool) -> int:
    size = 1 if flexible else 0
    for field in fields_of(cls):
        if version not in field.versions or field.tag is not None:
            continue
        if field.fixed:
            size += field.kind.size
        elif field.array or not field.is_struct:
            compact = flexible and field.flexible
            size += 1 if compact else 2 if not field.array and field.kind.name == "string" else 4
        elif version in field.nullable:
            size += 1
        else:
            size += _size(field.kind, version, flexible)
    return size


def has_records(cls: type[Struct]) -> bool:
    """Whether record batches travel anywhere inside."""
    return any(
        has_records(field.kind) if field.is_struct else field.kind.name == "records"
        for field in fields_of(cls)
    )
