"""Topics that are made and deleted."""

import asyncio

from ottla.client.errors import ClientError
from ottla.sim.cluster.fleet import Client, Fleet
from ottla.sim.cluster.workloads.workload import Workload

_ASKED_AGAIN_S = 2.9  # as soon as any client does


class Making(Workload):
    """An administrator who cannot make up his mind."""

    name = "topics"

    def __init__(self, fleet: Fleet, interval_s: float) -> None:
        super().__init__(fleet, ("administrator",))
        self._interval_s = interval_s
        self._numbers = 0
        self._busy = False
        # Made by a request that was sent more than once; the first may come late, and make it anew.
        self._slow: set[str] = set()

    async def live(self, client: Client) -> None:
        """Make topics, and delete some of them."""
        made, loop = self.fleet.history.made, asyncio.get_running_loop()
        while not self.is_enough:
            try:
                async with client.admin() as admin:
                    while not self.is_enough:
                        await asyncio.sleep(self._interval_s * 2 * client.entropy.random())
                        self._busy = True
                        there = sorted(name for name, is_there in made.items() if is_there)
                        if there and client.entropy.random() < 0.5:
                            name = there[client.entropy.below(len(there))]
                            made[name] = None
                            await admin.topics.delete(name)
                            made[name] = None if name in self._slow else False
                            client.note(f"has deleted {name}")
                        else:
                            self._numbers += 1
                            name = f"made-{self._numbers}"
                            made[name] = None
                            began = loop.time()
                            await admin.topics.create(name, partitions=1, replication_factor=3)
                            if loop.time() - began >= _ASKED_AGAIN_S:
                                self._slow.add(name)
                            made[name] = True
                            client.note(f"has made {name}")
                        self._busy = False
            except ClientError as error:
                client.note(f"could not do it: {error}")
                self._busy = False
                await asyncio.sleep(0.5)

    def crash(self, name: str) -> None:
        """End a process."""
        super().crash(name)
        self._busy = False

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way."""
        return self.is_enough and not self._busy
