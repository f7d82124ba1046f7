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

class Walk:
    fault: int
    index: int
    max_time: int
    bad: tuple[int, ...]
    is_late: bool
    found: bool
    found_time: int
    found_delta: int
    def __init__(
        self,
        count: int,
        base_time: int,
        append_time: int | None,
        is_dense: bool,
        is_keyed: bool,
        earliest: int,
        latest: int,
        find_low: int,
        find_high: int,
        find_delta: int,
        /,
    ) -> None: ...
    def feed(self, piece: Any, /) -> bool: ...
    def end(self) -> int: ...
