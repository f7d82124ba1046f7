from typing import Any

def sound(body: bytes, count: int, below: int, /) -> int: ...
def make(
    into: list[Any],
    cls: type[tuple[Any, ...]],
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    body: bytes,
    skip: int,
    take: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    /,
) -> None: ...
def columns(
    numbers: Any,
    flags: Any,
    at: int,
    data: bytes,
    start: int,
    size: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    /,
) -> bool: ...
