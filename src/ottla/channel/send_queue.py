"""What the kernel has not taken of a connection's answers.

The transport is handed one piece at a time, so that it holds (and copies) little, and tells us when the piece has gone.
A buffer counts in full until its last byte has gone, since until then it is kept in full. An answer that was encoded
into one large buffer is cut into pieces therefore: what the peer has taken of it is not kept, and does not count.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

from ottla.world.network import Push

_BUFFERS_A_PUSH = 256
_CUT_BYTES = 1 << 20  # of an encoded answer, which is cut into pieces of this size where it is larger


def cut(part: Any, sent: int = 0) -> list[Any]:
    """Return what follows the first `sent` bytes of a buffer: records as they are, a large answer in pieces."""
    if type(part) is bytearray and len(part) - sent > _CUT_BYTES:
        view = memoryview(part)
        return [bytes(view[start : start + _CUT_BYTES]) for start in range(sent, len(part), _CUT_BYTES)]
    return [memoryview(part)[sent:] if sent else part]


class SendQueue:
    """Buffers in order, the first of which may have gone in part."""

    __slots__ = ("_buffers", "_sent", "size_bytes")

    def __init__(self) -> None:
        self._buffers: deque[Any] = deque()
        self._sent = 0  # of the first buffer
        self.size_bytes = 0

    @property
    def left_bytes(self) -> int:
        """How many bytes have not gone."""
        return self.size_bytes - self._sent

    def put(self, parts: Iterable[Any]) -> None:
        """Add buffers at the end."""
        for part in parts:
            if len(part):
                self._buffers += cut(part)
                self.size_bytes += len(part)

    def push(self, push: Push) -> None:
        """Hand as much to the kernel as it takes."""
        while self._buffers:
            some = self._first(_BUFFERS_A_PUSH)
            size = sum(map(len, some))
            sent = push(some)
            self._drop(sent)
            if sent < size:
                break

    def piece(self, bytes_max: int) -> list[Any]:
        """Take out what the transport is to send next."""
        taken: list[Any] = []
        size = 0
        for part in self._first(_BUFFERS_A_PUSH):
            left = bytes_max - size
            taken.append(part if len(part) <= left else memoryview(part)[:left])
            size += len(taken[-1])
            if size >= bytes_max:
                break
        self._drop(size)
        return taken

    def rest(self) -> list[Any]:
        """Take out everything."""
        left = self._first(len(self._buffers))
        self._buffers.clear()
        self._sent = self.size_bytes = 0
        return left

    def _first(self, count: int) -> list[Any]:
        some = list(islice(self._buffers, count))
        if self._sent:
            some[0] = memoryview(some[0])[self._sent :]
        return some

    def _drop(self, size: int) -> None:
        size += self._sent
        buffers = self._buffers
        while buffers and size >= len(buffers[0]):
            gone = len(buffers.popleft())
            size -= gone
            self.size_bytes -= gone
        self._sent = size
