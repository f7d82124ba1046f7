"""Numbers in a template: digits, or a fixed number of bytes or hexadecimal digits."""

import re
from collections.abc import Callable
from typing import Literal

from ottla.cli.formats.template import TemplateError

Order = Literal["big", "little"]

_BINARY = re.compile(r"(big|little)(8|16|32|64)")
_HEX = re.compile(r"hex(4|8|16|32|64)")
KNOWN = "ascii, bool, byte, big8 to big64, little8 to little64, hex4 to hex64"


def number_writer(modifier: str) -> Callable[[int], bytes]:
    """Return what makes bytes of a number; too large a number loses its upper bits."""
    if modifier in ("", "ascii"):
        return lambda number: b"%d" % number
    if modifier == "bool":
        return lambda number: b"true" if number else b"false"
    size = binary_size(modifier)
    if size is not None:
        width, order = size
        mask = (1 << 8 * width) - 1
        return lambda number: (number & mask).to_bytes(width, order)
    digits = hex_digits(modifier)
    if digits is not None:
        mask = (1 << 4 * digits) - 1
        return lambda number: b"%0*x" % (digits, number & mask)
    raise TemplateError(f"{{{modifier}}} is no way to write a number; there are {KNOWN}")


def binary_size(modifier: str) -> tuple[int, Order] | None:
    """Return how many bytes a modifier asks for, and in which order; None when it is not about bytes."""
    if modifier == "byte":
        return 1, "big"
    found = _BINARY.fullmatch(modifier)
    return None if found is None else (int(found[2]) // 8, "big" if found[1] == "big" else "little")


def hex_digits(modifier: str) -> int | None:
    """Return how many hexadecimal digits a modifier asks for; None when it is not about them."""
    found = _HEX.fullmatch(modifier)
    return None if found is None else int(found[1]) // 4
