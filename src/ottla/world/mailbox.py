"""Letters between processes of one machine: whoever knows where a box is may put one in, and waits for nobody.

B1  A letter arrives whole or not at all.
B2  Where nobody has a box, or nobody empties it, a letter is lost, and its writer is held up for a moment at most.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_SIZE = struct.Struct(">I")
_LETTER_BYTES_MAX = 1 << 20
_PATH_BYTES_MAX = 107  # what the address of a Unix socket has room for
_PATIENCE_S = 0.05

Receive = Callable[[bytes], None]


def post(path: str, letter: bytes) -> bool:
    """Put a letter into the box at `path`; whether it went in."""
    if len(letter) > _LETTER_BYTES_MAX:
        return False
    try:
        with _address(path) as address, socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_PATIENCE_S)
            line.connect(address)
            line.sendall(_SIZE.pack(len(letter)) + letter)
    except OSError:
        return False
    return True


class Box:
    """Where letters arrive, until somebody else puts up a box in the same place."""

    def __init__(self, path: str, server: asyncio.AbstractServer) -> None:
        self._path = path
        self._server = server
        self._identity = _identity(path)

    @classmethod
    async def put_up(cls, path: str, receive: Receive) -> "Box | None":
        """Have letters for `path` handed to `receive`, whoever had them before; None where that cannot be."""
        line = socket.socket(socket.AF_UNIX)
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)
            with _address(path) as address:
                line.bind(address)
            server = await asyncio.get_running_loop().create_unix_server(lambda: _Slot(receive), sock=line)
        except OSError:
            line.close()
            return None
        return cls(path, server)

    @property
    def is_there(self) -> bool:
        """Whether letters still come here."""
        return self._identity is not None and _identity(self._path) == self._identity

    def take_down(self) -> None:
        """Receive no more; another's box in this place stays."""
        if self.is_there:
            with suppress(OSError):
                os.unlink(self._path)
        self._server.close()


@contextmanager
def _address(path: str) -> Iterator[str]:
    """Yield a path that fits into an address; where it is long, Linux lets its directory go by a number."""
    if len(os.fsencode(path)) <= _PATH_BYTES_MAX:
        yield path
        return
    directory, _, name = path.rpartition("/")
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Slot(asyncio.Protocol):
    """One letter on its way in."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._data = bytearray()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        if len(self._data) < _SIZE.size:
            return
        (size,) = _SIZE.unpack_from(self._data)
        if size > _LETTER_BYTES_MAX or len(self._data) >= _SIZE.size + size:
            assert self._transport is not None
            self._transport.close()
            if len(self._data) == _SIZE.size + size:
                self._receive(bytes(self._data[_SIZE.size :]))
