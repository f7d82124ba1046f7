"""Connections that read and write by compiled code, where it could be built."""

from ottla.channel.connection import Connection, Connections
from ottla.channel.receive_buffer import ReceiveBuffer
from ottla.world.network import Pusher

try:
    from ottla.channel import _frames
except ImportError:  # no compiler when Ottla was installed
    _frames = None  # type: ignore[assignment]

IS_HERE = _frames is not None

if IS_HERE:
    _frames.learn({cls.__name__: cls for cls in (Connection, Connections, ReceiveBuffer, Pusher)})

    class SwiftConnection(Connection):
        """A connection whose frames are found by `_frames.c`."""

        __slots__ = ()

        get_buffer = _frames.get_buffer  # type: ignore[assignment]
        buffer_updated = _frames.buffer_updated  # type: ignore[assignment]

else:
    SwiftConnection = Connection  # type: ignore[misc,assignment]
