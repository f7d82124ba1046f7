"""The links between simulated hosts: slow, cut in one direction or both, or without power at an end.

T2  A cut holds back what is sent that way, and what was on its way; it arrives after the cut is healed, for TCP sends
    again what nobody has acknowledged. Each direction is cut on its own.
T5  Where windows are small, so many bytes are under way, or wait to be read, and no more; the rest stays with whoever
    sends. A host that reads slowly takes some bytes at a time.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.sim.loop import Process, Timeline
from ottla.world.entropy import Entropy

if TYPE_CHECKING:
    from ottla.sim.cluster.network import SimListening
    from ottla.sim.cluster.transport import SimTransport

_RETRANSMIT_S_MAX = 1.5
_READ_AGAIN_S = 0.02
_FIRST_FREE_PORT = 40_000


class Fabric:
    """All links. Hosts are known by name; a link from a host to itself is never cut."""

    def __init__(self, timeline: Timeline, entropy: Entropy) -> None:
        self.timeline = timeline
        self._draw = entropy.random
        self.delay_s = (0.0002, 0.002)
        self.slow: dict[tuple[str, str], float] = {}  # links with a delay of their own, in seconds
        self.pieces = 0.0  # how often what is written at once arrives in two pieces
        self.cuts: set[tuple[str, str]] = set()
        self.listening: dict[tuple[str, int], SimListening] = {}
        self.dark: set[str] = set()  # hosts without power
        self.carried = 0
        self.window_bytes: int | None = None  # of a direction of a connection; None is as large as it takes
        self.slow_readers: dict[str, None] = {}  # hosts
        self.read_bytes = 0  # that they take at a time
        self.read_again_s = _READ_AGAIN_S
        self.watch: Callable[[str, str, bytes], None] | None = None
        self.wire = Process(timeline, "the network")  # which never stops and never dies
        self._held: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self._ports = _FIRST_FREE_PORT
        self.transports: dict[SimTransport, None] = {}
        self.ended: list[tuple[float, str, str]] = []  # connections: when, at which host, to which

    # Links

    def delay(self, source: str, target: str) -> float:
        """How long the next piece takes."""
        low, high = self.delay_s
        return low + self._draw() * (high - low) + self.slow.get((source, target), 0.0)

    def is_in_pieces(self) -> bool:
        """Whether what is written now arrives in two pieces."""
        return self.pieces > 0 and self._draw() < self.pieces

    def retransmission(self) -> float:
        """How long after a cut is healed what was held back is sent again: TCP waits longer each time."""
        return _RETRANSMIT_S_MAX * self._draw() ** 2

    def share(self) -> float:
        """Where it is cut."""
        return self._draw()

    def is_cut(self, source: str, target: str) -> bool:
        """Whether nothing passes that way."""
        return (source, target) in self.cuts or source in self.dark or target in self.dark

    def hold(self, source: str, target: str, again: Callable[[], None]) -> None:
        """Try again once the link is healed."""
        self._held.setdefault((source, target), []).append(again)

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass from one to the other."""
        if source != target:
            self.cuts.add((source, target))

    def heal(self, source: str, target: str) -> None:
        """Let things pass again; what was held back is sent again."""
        self.cuts.discard((source, target))
        self._release()

    def heal_all(self) -> None:
        """End every cut and every delay, and let everybody read."""
        self.all_read()
        self.cuts.clear()
        self.slow.clear()
        self._release()

    def _release(self) -> None:
        for link in [link for link in self._held if not self.is_cut(*link)]:
            for again in self._held.pop(link):
                again()

    def all_read(self) -> None:
        """Make windows large, and readers as quick as they can be."""
        self.window_bytes = None
        self.slow_readers = {}
        for transport in list(self.transports):
            transport.fill_window()

    def reset(self, host: str) -> None:
        """Break every connection of a host, as a firewall does that forgets them."""
        for transport in [each for each in self.transports if each.host == host]:
            transport.break_off()

    # Machines

    def new_port(self) -> int:
        """A port that nobody has."""
        self._ports += 1
        return self._ports

    def process_died(self, process: Process) -> None:
        """Take away what a process had, and tell its peers (T3)."""
        for address in [address for address, each in self.listening.items() if each.process is process]:
            del self.listening[address]
        for transport in [each for each in self.transports if each.process is process]:
            transport.vanish()

    def power_lost(self, host: str) -> None:
        """Take away what a machine had; nobody is told."""
        self.dark.add(host)

    def power_back(self, host: str) -> None:
        """Let a machine answer again: what comes for connections that it has forgotten is reset."""
        self.dark.discard(host)
        self._release()

    def at(self, moment: float, callback: Callable[..., object], *arguments: Any) -> None:
        """Have something happen in the network, which belongs to no process."""
        self.wire.call_at(moment, callback, *arguments)
