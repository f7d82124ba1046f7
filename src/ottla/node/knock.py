"""Knocks at the door of a broker whose connection closed: whether anybody is there.

K1  A connection that is refused means that the broker's process is gone: its host says so, and nothing else does. What
    does not answer, or cannot be reached, may be behind a cut cable: that tells nothing, and silence is measured as
    ever.
K2  A process that is just being ended may still accept what it will never serve, so there is a second knock, and a
    few more.
K3  One visit to a node at a time; it ends when its door is opened for the last time, or refused.
"""

import asyncio
from collections.abc import Callable

from ottla.channel.peers import Address
from ottla.world.network import Network

_WAITS_S = (0.0, 0.005, 0.02, 0.05, 0.1)
_ANSWER_S_MAX = 1.0


class _Visitor(asyncio.Protocol):
    """Leaves as soon as the door opens."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class Knocking:
    """Visits to the nodes whose addresses `address` knows; `refused` hears at which of them nobody is."""

    def __init__(
        self,
        network: Network,
        address: Callable[[int], Address | None],
        refused: Callable[[int], object],
    ) -> None:
        self._network = network
        self._address = address
        self._refused = refused
        self._visits: dict[int, asyncio.Task[None]] = {}

    def visit(self, node_id: int) -> None:
        """Knock, unless somebody is at that door already."""
        if node_id not in self._visits:
            task = self._visits[node_id] = asyncio.ensure_future(self._knock(node_id))
            task.add_done_callback(lambda _: self._visits.pop(node_id, None))

    def close(self) -> None:
        """Visit nobody any more."""
        for task in list(self._visits.values()):
            task.cancel()

    async def _knock(self, node_id: int) -> None:
        address = self._address(node_id)
        if address is None:
            return
        for wait_s in _WAITS_S:
            await asyncio.sleep(wait_s)
            try:
                await asyncio.wait_for(self._network.connect(*address, _Visitor), _ANSWER_S_MAX)
            except ConnectionRefusedError:
                self._refused(node_id)
                return
            except (OSError, TimeoutError):
                return
