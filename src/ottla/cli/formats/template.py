r"""Templates with % escapes, as kcat and rpk have them: `-f '%t[%p]@%o %k: %v\n'`.

    %t topic   %p partition   %o offset   %d %T timestamp   %e leader epoch   %i number of the record
    %k key     %K its length  %v %s value %V %S its length  %R value's length in four bytes
    %h headers %H how many    %% %{ %}    \t \n \r \\ \xNN

An escape may be followed by a modifier in braces: `%v{hex}`, `%K{big32}`, `%d{strftime[%F]}`. What a modifier takes is
put between brackets, braces or any number of #. Headers take a template of their own: `%h{ %k=%v }`.

A template is only cut into pieces here; `writer` fills it and `reader` reads with it.
"""

import re
from typing import NamedTuple

SIMPLE = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", "0": b"\0"}
CLOSING = {"[": "]", "{": "}", "(": ")", "#": "#"}
FIELDS = frozenset("tpodTeikKvsVSRhH")
HEADER_FIELDS = frozenset("kKvsVS")
# Two letters for one thing: kcat's and rpk's.
SAME = {"s": "v", "S": "V", "T": "d"}


class TemplateError(Exception):
    """A template that means nothing; the text says where."""


class Field(NamedTuple):
    """A % escape: its letter, and what stood in braces behind it."""

    letter: str
    modifier: str = ""
    argument: str = ""
    inner: "tuple[Piece, ...] | None" = None


Piece = bytes | Field


def parse_template(text: str) -> tuple[Piece, ...]:
    """Cut a template into literal bytes and fields."""
    return _Scanner(text).pieces(FIELDS, nested=False)


def unescape(text: str) -> bytes:
    r"""Return the bytes behind a text with \ escapes, as delimiters are given."""
    pieces = _Scanner(text.replace("%", "%%")).pieces(frozenset(), nested=False)
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def pieces(self, fields: frozenset[str], *, nested: bool) -> tuple[Piece, ...]:
        """Read up to the end, or to the brace that ends a template inside another."""
        found: list[Piece] = []
        literal = bytearray()
        while self._at < len(self._text):
            each = self._take()
            if each == "\\":
                literal += self._escape()
            elif each == "%" and self._peek() in ("%", "{", "}"):
                literal += self._take().encode()
            elif each == "%":
                if literal:
                    found.append(bytes(literal))
                    literal.clear()
                found.append(self._field(fields))
            elif nested and each == "}":
                nested = False
                break
            else:
                literal += each.encode("utf-8", "surrogateescape")
        if nested:
            raise TemplateError("a brace { is not closed")
        if literal:
            found.append(bytes(literal))
        return tuple(found)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        self._at += 1
        return self._text[self._at - 1 : self._at]

    def _escape(self) -> bytes:
        each = self._take()
        if each in SIMPLE:
            return SIMPLE[each]
        if each == "x":
            digits = self._text[self._at : self._at + 2]
            if re.fullmatch("[0-9a-fA-F]{2}", digits):
                self._at += 2
                return bytes.fromhex(digits)
            raise TemplateError("\\x is followed by two hexadecimal digits")
        raise TemplateError(f"\\{each} means nothing; there are \\n \\t \\r \\0 \\\\ and \\xNN")

    def _field(self, fields: frozenset[str]) -> Field:
        letter = self._take()
        if letter not in fields or not letter:
            known = " ".join(f"%{each}" for each in sorted(fields, key=str.lower))
            raise TemplateError(f"%{letter} means nothing here; there are {known}, and %% for a percent sign")
        letter = SAME.get(letter, letter)
        if self._peek() != "{":
            return Field(letter)
        self._at += 1
        if letter == "h":
            return Field(letter, inner=self.pieces(HEADER_FIELDS, nested=True))
        name = re.compile(r"[a-z0-9-]*").match(self._text, self._at)
        assert name is not None
        self._at = name.end()
        argument = "" if self._peek() == "}" else self._argument(letter)
        if self._take() != "}":
            raise TemplateError(f"the brace behind %{letter} is not closed")
        return Field(letter, name[0], argument)

    def _argument(self, letter: str) -> str:
        """Read what stands between brackets; as many as open it close it."""
        opening = re.compile(r"\[+|\{+|\(+|#+").match(self._text, self._at)
        if opening is None:
            raise TemplateError(f"the brace behind %{letter} holds more than a modifier")
        closing = CLOSING[opening[0][0]] * len(opening[0])
        end = self._text.find(closing, opening.end())
        if end < 0:
            raise TemplateError(f"{opening[0]} behind %{letter} is not closed by {closing}")
        self._at = end + len(closing)
        return self._text[opening.end() : end]
