"""Connections that read and write by compiled code, where it could be built."""

from ottla.channel.connection import FRAMES_A_TURN, Connection
from ottla.channel.connections import (
    LIGHT_COST_MAX,
    LOOP_COST_MAX,
    TURN_COST_MAX,
    Connections,
)
from ottla.channel.receive_buffer import ReceiveBuffer
from ottla.channel.turns import LIGHT
from ottla.world.network import Pusher

try:
    from ottla.channel import _frames
except ImportError:  # no compiler when Ottla was installed
    _frames = None  # type: ignore[assignment]

IS_HERE = _frames is not None
CLASSES: tuple[type, ...] = (Connection, Connections, ReceiveBuffer, Pusher)
NUMBERS = {
    "FRAMES_A_TURN": FRAMES_A_TURN,
    "LIGHT": LIGHT,
    "LIGHT_COST_MAX": LIGHT_COST_MAX,
    "LOOP_COST_MAX": LOOP_COST_MAX,
    "TURN_COST_MAX": TURN_COST_MAX,
}

if IS_HERE:
    _frames.learn({cls.__name__: cls for cls in CLASSES} | NUMBERS)

    class SwiftConnection(Connection):
        """A connection whose frames are found by `_frames.c`."""

        __slots__ = ()

        get_buffer = _frames.get_buffer  # type: ignore[assignment]
        buffer_updated = _frames.buffer_updated  # type: ignore[assignment]

else:
    SwiftConnection = Connection  # type: ignore[misc,assignment]
