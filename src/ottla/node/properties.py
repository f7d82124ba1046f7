"""Java's .properties files, read as java.util.Properties reads them.

The bytes are Latin-1. A line is a comment when its first visible character is # or !. A line that ends in an odd number
of backslashes goes on in the next one, whose leading blanks fall away. The key ends at the first unescaped =, : or
blank. Of two lines with one key, the later counts.
"""

import re
from collections.abc import Iterator

_BLANK = " \t\f"
_LINE = re.compile(r"\r\n|\n|\r")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """The file is not a properties file."""


def parse_properties(data: bytes) -> dict[str, str]:
    """Key and value of every line of a properties file."""
    properties = {}
    for line in _logical_lines(data.decode("latin-1")):
        end = _key_end(line)
        value_at = _skip_blanks(line, end)
        if value_at < len(line) and line[value_at] in "=:":
            value_at = _skip_blanks(line, value_at + 1)
        properties[_unescape(line[:end])] = _unescape(line[value_at:])
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    parts: list[str] = []
    for natural in _LINE.split(text):
        line = natural.lstrip(_BLANK)
        if not parts and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            parts.append(line[:-1])
            continue
        yield "".join([*parts, line])
        parts.clear()
    if parts:
        yield "".join(parts)


def _key_end(line: str) -> int:
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANK:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _skip_blanks(line: str, at: int) -> int:
    while at < len(line) and line[at] in _BLANK:
        at += 1
    return at


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\" or at == len(text):
            out.append(char)
            continue
        char = text[at]
        at += 1
        if char == "u":
            code = text[at : at + 4]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", code):
                raise PropertiesError(f"\\u{code} is not a character: four hexadecimal digits belong there")
            out.append(chr(int(code, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(char, char))
    # Two \u escapes may be the halves of one character, as in Java's UTF-16.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
