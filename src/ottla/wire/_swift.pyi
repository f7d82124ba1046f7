from collections.abc import Callable
from typing import Any

class Reader:
    general: Callable[[Any, int, int], tuple[Any, int]]
    def __init__(
        self,
        plan: tuple[Any, ...],
        general: Callable[[Any, int, int], tuple[Any, int]],
        elements_max: int,
        /,
    ) -> None: ...
    def __call__(self, buf: Any, pos: int, end: int, /) -> tuple[Any, int]: ...
