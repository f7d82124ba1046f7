"""Where a decoder under construction stands: the position it has reached, and what it will read there in one go.

C1  The position is `pos` plus `offset`, a number known when the source is written; `settle` makes it `pos` alone.
C2  Fixed fields gather in `run` until something of unknown size comes, and are then read by one unpack.
"""

import struct

from ottla.wire.source import Source


class Cursor:
    """Writes the reading of fixed fields and lengths to a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.offset = 0
        self.run: list[tuple[str, str]] = []
        # The length that the next field begins with, when it is read already.
        self.ahead: str | None = None

    def at(self, change: int = 0) -> str:
        """The current position as an expression, `change` bytes further on."""
        offset = self.offset + change
        return f"pos + {offset}" if offset > 0 else f"pos - {-offset}" if offset else "pos"

    def flush(self) -> None:
        """Read the fixed fields gathered so far."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        if codes == "B":
            self.source.line(f"{targets} = buf[{self.at()}]")
        elif codes == "?":
            self.source.line(f"{targets} = buf[{self.at()}] != 0")
        else:
            comma = "," if len(self.run) == 1 else ""
            unpack = self.source.struct(codes, "unpack_from")
            self.source.line(f"{targets}{comma} = {unpack}(buf, {self.at()})")
        self.offset += struct.calcsize(">" + codes)
        self.run = []

    def settle(self) -> None:
        """Bring `pos` to the current position, as loops and branches need."""
        self.flush()
        if self.offset:
            self.source.line(f"pos += {self.offset}")
            self.offset = 0

    def length(self, code: str, compact: bool) -> str:
        """Read a length with the run before it; the variable holds it plus one when compact."""
        if self.ahead is not None:
            name, self.ahead = self.ahead, None
            return name
        name = self.source.fresh("n")
        self.run.append(("B" if compact else code, name))
        self.flush()
        return name

    def long_length(self, name: str, read: str = "read_varint") -> None:
        """Read a compact length again when its first byte says that it goes on."""
        self.source.line(f"if {name} > 127:")
        with self.source.block():
            self.source.line(f"{name}, pos = {read}(buf, {self.at(-1)})")
            if self.offset:
                self.source.line(f"pos -= {self.offset}")

    def inline_long_length(self, name: str) -> None:
        """The same without a call when the length has two or three bytes, as that of record batches has.

        The continuation bits of the bytes before the last are taken off as one number: 2**7, or 2**7 + 2**14.
        """
        source = self.source
        second, third = source.fresh("b"), source.fresh("b")
        source.line(f"if {name} > 127:")
        with source.block():
            source.line(f"{second} = buf[{self.at()}]")
            source.line(f"if {second} < 128:")
            with source.block():
                source.line(f"{name} += ({second} << 7) - {1 << 7}")
                source.line("pos += 1")
            source.line("else:")
            with source.block():
                source.line(f"{third} = buf[{self.at(1)}]")
                source.line(f"if {third} < 128:")
                with source.block():
                    source.line(f"{name} += ({second} << 7) + ({third} << 14) - {(1 << 7) + (1 << 14)}")
                    source.line("pos += 2")
                source.line("else:")
                with source.block():
                    source.line(f"{name}, pos = read_varint(buf, {self.at(-1)})")
                    source.line(f"pos -= {self.offset}")
