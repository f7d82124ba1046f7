"""A program that differs, with fewer records and cuts. Its lines stay, since what is promised depends on them."""

from collections.abc import Callable
from dataclasses import replace

from tests.agreement.program import Program


def smaller(program: Program, differs: Callable[[Program], bool]) -> Program:
    """The smallest program that is found by leaving things out."""
    for fewer in ({"cuts": (), "restart": 0}, {"restart": 0}):
        program = _taken(program, replace(program, **fewer), differs)
    size = len(program.records) // 2
    while size:
        start = 0
        while start < len(program.records):
            rest = (*program.records[:start], *program.records[start + size :])
            less = _taken(program, replace(program, records=rest), differs)
            start += size if less is program else 0
            program = less
        size //= 2
    return program


def _taken(before: Program, after: Program, differs: Callable[[Program], bool]) -> Program:
    return after if after != before and differs(after) else before
