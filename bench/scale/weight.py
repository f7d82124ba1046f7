"""What objects weigh: every object that is reached from one, counted once."""

import gc
import sys
from collections.abc import Iterable
from types import FunctionType, ModuleType

_SHARED = (type, ModuleType, FunctionType)


def weigh(*roots: object, without: Iterable[object] = ()) -> int:
    """Bytes of all that hangs on the roots, and not on those left out."""
    seen: set[int] = set()
    for each in without:
        _walk(each, seen)
    return sum(_walk(root, seen) for root in roots)


def _walk(root: object, seen: set[int]) -> int:
    total = 0
    stack = [root]
    while stack:
        each = stack.pop()
        if id(each) in seen or isinstance(each, _SHARED):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        stack.extend(gc.get_referents(each))
    return total
