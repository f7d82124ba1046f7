"""The connections that this process has accepted on a port, where a library accepts them and does not show them.

They are found by their descriptors, in /proc/self/fd, and asked through TCP_INFO. `hang_up` shuts a connection down, so
that whoever serves it reads its end and closes it. Where there is no /proc, none are found.
"""

import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, suppress

_DESCRIPTORS = "/proc/self/fd"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_ESTABLISHED = 1
# struct tcp_info of linux/tcp.h: its first byte is the state; behind these offsets what arrived and what was taken.
_INFO_BYTES = 136
_BYTES_ACKED, _BYTES_RECEIVED = 120, 128


class AcceptedSocket:
    """One connection. `number` is the kernel's, so it is never another's while this one lives."""

    __slots__ = ("_descriptor", "bytes_received", "bytes_taken", "number")

    def __init__(self, descriptor: int, number: int, bytes_received: int, bytes_taken: int) -> None:
        self._descriptor = descriptor
        self.number = number
        self.bytes_received = bytes_received
        self.bytes_taken = bytes_taken

    def hang_up(self) -> None:
        """End the connection in both directions."""
        with suppress(OSError):
            if _number(self._descriptor) != self.number:
                return
            with closing(socket.socket(fileno=os.dup(self._descriptor))) as own:
                if _number(own.fileno()) == self.number:
                    own.shutdown(socket.SHUT_RDWR)


class AcceptedSockets:
    """The connections on one port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._others: set[int] = set()  # sockets that are not of our port

    def look(self) -> list[AcceptedSocket]:
        """Return the connections there are."""
        found, others = [], set()
        for descriptor, number in _sockets():
            if number in self._others:
                others.add(number)
                continue
            with suppress(OSError), closing(socket.socket(fileno=os.dup(descriptor))) as own:
                if own.type is not socket.SOCK_STREAM or own.family not in (socket.AF_INET, socket.AF_INET6):
                    others.add(number)
                    continue
                if own.getsockname()[1] != self._port or own.getsockopt(
                    socket.SOL_SOCKET, socket.SO_ACCEPTCONN
                ):
                    others.add(number)
                    continue
                info = own.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
                if len(info) == _INFO_BYTES and info[0] == _ESTABLISHED:
                    acked, received = struct.unpack_from("=QQ", info, _BYTES_ACKED)
                    found.append(AcceptedSocket(descriptor, number, received, acked))
        self._others = others
        return found


def _sockets() -> Iterator[tuple[int, int]]:
    with suppress(OSError):
        for name in os.listdir(_DESCRIPTORS):
            number = _number(int(name))
            if number:
                yield int(name), number


def _number(descriptor: int) -> int:
    """The kernel's number of a socket, 0 for anything else."""
    try:
        match = _SOCKET.fullmatch(os.readlink(f"{_DESCRIPTORS}/{descriptor}"))
    except OSError:
        return 0
    return int(match[1]) if match else 0
