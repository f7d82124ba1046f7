"""Where bytes from the network land.

One buffer serves all connections of a loop, because a frame is served before the next read; and frames too large for it
get a buffer of their own, as fast as their bytes come and not as fast as they are announced.
"""

_FIRST_BYTES = 16 << 10
_SPARE_BYTES_MIN = 64 << 10
_SPARE_BYTES_MAX = 2 << 20
_SPARE_STEP_BYTES = 256 << 10
_SPARES_MAX = 8


class ReceiveBuffer:
    """The one buffer that all connections of a loop read into, and a few spare ones for frames too large for it.

    A fresh buffer of a megabyte costs the kernel as much in page faults as filling it does; a spare one costs nothing.
    """

    __slots__ = ("_spares", "data", "view")

    def __init__(self, size_bytes: int = 256 << 10) -> None:
        self.data = bytearray(size_bytes)
        self.view = memoryview(self.data)
        self._spares: list[bytearray] = []

    def frame(self, need_bytes: int, have_bytes: int) -> bytearray:
        """Return a buffer for a frame, as much of it as may be had for what has arrived (law C4 of a connection)."""
        if _SPARE_BYTES_MIN < need_bytes <= _SPARE_BYTES_MAX:
            spares = self._spares
            for at in range(len(spares)):
                if len(spares[at]) >= need_bytes:
                    return spares.pop(at)
            if 4 * have_bytes >= need_bytes:
                # The rest is on its way; a round size fits the next frame as well.
                return bytearray(-(-need_bytes // _SPARE_STEP_BYTES) * _SPARE_STEP_BYTES)
        return bytearray(min(need_bytes, max(_FIRST_BYTES, 2 * have_bytes)))

    def give_back(self, frame: bytearray) -> None:
        """Keep a frame's buffer for the next one; by law C2 nobody holds a view of it."""
        if _SPARE_BYTES_MIN < len(frame) <= _SPARE_BYTES_MAX and len(self._spares) < _SPARES_MAX:
            self._spares.append(frame)
