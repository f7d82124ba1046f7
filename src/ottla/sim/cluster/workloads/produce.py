"""Producers: each sends numbered records to the partitions of a topic, without waiting for one before the next."""

import asyncio

from ottla.client.errors import ClientError
from ottla.client.producer.delivery import Delivery
from ottla.sim.cluster.fleet import Client, Fleet
from ottla.sim.cluster.history import Sent
from ottla.sim.cluster.workloads.workload import LOG, PARTITIONS, Workload


class Producing(Workload):
    """Idempotent producers that ask for all replicas."""

    name = "produce"

    def __init__(self, fleet: Fleet, count: int, interval_s: float, *, has_keys: bool = False) -> None:
        super().__init__(fleet, tuple(f"producer-{number}" for number in range(1, count + 1)))
        self._interval_s = interval_s
        self._has_keys = has_keys  # as a compacted topic asks for
        self._numbers = 0
        self._open: dict[str, int] = {}  # how many records have a fate that is not known

    async def live(self, client: Client) -> None:
        """Send until it is enough."""
        sender = client.process.name
        while not self.is_enough:
            try:
                async with client.producer() as producer:
                    while not self.is_enough:
                        await asyncio.sleep(self._interval_s * 2 * client.entropy.random())
                        for _ in range(1 + client.entropy.below(3)):
                            self._numbers += 1
                            value = b"%s %d" % (sender.encode(), self._numbers)
                            sent = Sent(sender, (LOG, client.entropy.below(PARTITIONS)), value)
                            self.fleet.history.sent.append(sent)
                            key = value if self._has_keys else None
                            delivery = await producer.send(LOG, value, key=key, partition=sent.place[1])
                            self._open[client.name] = self._open.get(client.name, 0) + 1
                            delivery.add_done_callback(
                                lambda delivery, sent=sent: self._done(client, sent, delivery)  # type: ignore[misc]
                            )
            except ClientError as error:
                client.note(f"a producer is given up: {error}")
                # What is sent by the next one has another producer id, and no order to what this one sent.
                sender = f"{client.process.name} after {self._numbers}"
                await asyncio.sleep(0.5)

    def _done(self, client: Client, sent: Sent, delivery: Delivery) -> None:
        self._open[client.name] -= 1
        error = delivery.exception()
        if error is None:
            sent.offset = delivery.metadata().offset
        else:
            client.note(f"{sent.value!r} was not acknowledged: {error}")

    def crash(self, name: str) -> None:
        """End a process; of what it had under way nobody will hear."""
        super().crash(name)
        self._open.pop(name, None)

    @property
    def is_over(self) -> bool:
        """Whether the fate of every record is known, as far as it will be."""
        return self.is_enough and not any(self._open.values())
