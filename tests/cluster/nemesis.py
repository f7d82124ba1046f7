"""What befalls a cluster under load: nodes are killed, stopped in their tracks, cut off, and restarted in order.

Each trial goes the same way: it begins, writes must go on while it lasts, it ends, and all are in sync before the next.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.switchboard import Switchboard
from tests.peers.cluster import Cluster
from tests.peers.deadline import eventually
from tests.peers.server import HOST, free_ports

PROGRESS_SECONDS_MAX = 30.0  # on a machine that has other things to do


class CutCluster(Cluster):
    """A cluster whose nodes reach each other only through a switchboard; clients reach them directly."""

    def __init__(self, directory: Path, board: Switchboard) -> None:
        super().__init__(directory)
        self.board = board
        doors = {id: board.reach(id, node.controller_port) for id, node in self.nodes.items()}
        voters = ",".join(f"{id}@{HOST}:{door}" for id, door in doors.items())
        for id, node in self.nodes.items():
            [inner] = free_ports(1)
            outside = f"PLAINTEXT://{HOST}:{node.port}"
            node.settings |= {
                "controller.quorum.voters": voters,
                "listeners": f"{outside},INTERNAL://{HOST}:{inner},CONTROLLER://{HOST}:{node.controller_port}",
                # A leader of the quorum tells others where it is: that, too, is a door of the switchboard.
                "advertised.listeners": f"{outside},INTERNAL://{HOST}:{board.reach(id, inner)},"
                f"CONTROLLER://{HOST}:{doors[id]}",
                "inter.broker.listener.name": "INTERNAL",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }

    def start(self) -> None:
        for id in self.nodes:
            self.board.up(id)
        super().start()

    def kill(self, id: int) -> None:
        self.nodes[id].kill()
        self.board.down(id)

    def stop_one(self, id: int) -> None:
        self.nodes[id].stop()
        self.board.down(id)

    def start_one(self, id: int) -> None:
        self.board.up(id)
        self.nodes[id].start()


@dataclass
class Nemesis:
    """Trials of every kind, by chance; `acknowledged` says how many writes were, so far."""

    cluster: CutCluster
    topic: str
    chance: random.Random
    acknowledged: Callable[[], int]
    done: Counter[str] = field(default_factory=Counter)
    waits_s: list[float] = field(default_factory=list)

    def kill(self, whom: str) -> None:
        """kill -9."""
        victim = self._find(whom)
        self._tell(f"kill {whom}", victim)
        self.cluster.kill(victim)
        self._progress()
        self.cluster.start_one(victim)
        self._recover()

    def pause(self, whom: str, seconds: float) -> None:
        """SIGSTOP, and SIGCONT some seconds later."""
        victim = self._find(whom)
        self._tell(f"pause {whom}", victim)
        pid = self.cluster.nodes[victim].pid
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        try:
            self._progress()
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        finally:
            os.kill(pid, signal.SIGCONT)
        self._recover()

    def cut(self, how: str, whom: str, seconds: float) -> None:
        """Cut a node off from the others: both ways, what it sends, what it is sent, or with every connection
        broken."""
        victim = self._find(whom)
        others = [id for id in self.cluster.nodes if id != victim]
        self._tell(f"cut {how} {whom}", victim)
        out, into = [(victim, other) for other in others], [(other, victim) for other in others]
        board = self.cluster.board
        began = time.monotonic()
        if how == "broken":
            for other in others:
                board.break_up(victim, other)
        else:
            board.cut(*{"silent": out + into, "outward": out, "inward": into}[how])
        try:
            self._progress()
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        finally:
            board.heal()
        self._recover()

    def restart_all(self) -> None:
        """An orderly stop and a start of each, one after the other."""
        for id in self.cluster.nodes:
            self._tell("restart", id)
            self.cluster.stop_one(id)
            self._progress()
            self.cluster.start_one(id)
            self._recover()

    def _find(self, whom: str) -> int:
        nodes, leader = self.cluster.nodes, self.cluster.leaders(self.topic).get(0, -1)
        if whom == "controller":
            leader = self.cluster.controller()
        elif whom == "follower":
            return self.chance.choice([id for id in nodes if id != leader])
        return leader if leader in nodes else self.chance.choice(list(nodes))

    def _tell(self, what: str, victim: int) -> None:
        self.done[what] += 1
        print(f"{time.strftime('%H:%M:%S')} {what}: node {victim}", flush=True)

    def _progress(self) -> None:
        """Writes go on, in the time that a failover may take."""
        began, goal = time.monotonic(), self.acknowledged() + 20
        eventually(lambda: self.acknowledged() >= goal, PROGRESS_SECONDS_MAX)
        self.waits_s.append(time.monotonic() - began)

    def _recover(self) -> None:
        """All are in sync, by the word of each: one that was cut off may not have heard yet that it is not."""
        self.cluster.wait_whole(60)

        def are_in_sync() -> bool:
            found = [self.cluster.metadata(id, self.topic).topics[0] for id in self.cluster.nodes]
            return all(len(part.isr_nodes) == 3 for topic in found for part in topic.partitions)

        eventually(are_in_sync, 60)
