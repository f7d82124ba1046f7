"""A listening TCP socket for a server that takes a descriptor: ours alone, or refused.

L1  The port is not shared (no SO_REUSEPORT): where another process has it, OSError says so.
"""

import os
import socket


class ListeningSocket:
    """A port that is ours and listens, until it is closed."""

    def __init__(self, host: str, port: int, *, backlog: int = 128) -> None:
        """Port 0 takes a free one; an empty host stands for every interface."""
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._socket = socket.socket(family, kind, protocol)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.bind(address)
            self._socket.listen(backlog)
            self._socket.setblocking(False)
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    def duplicate(self) -> int:
        """Return a descriptor of the same socket, which its receiver closes."""
        return os.dup(self._socket.fileno())

    def close(self) -> None:
        """Let the port go, as far as it is for us."""
        self._socket.close()
