"""The cluster is asked at most once a second, and a cluster that is not there is an answer, too."""

import asyncio

from ottla.services.cluster import ClusterAnswer, ClusterStatus
from ottla.world.network import free_port


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return 0


class Counted(ClusterStatus):
    asked = 0

    async def _describe(self) -> ClusterAnswer:
        self.asked += 1
        await asyncio.sleep(0)
        return ClusterAnswer(None, f"problem {self.asked}")


def test_many_who_ask_are_one_question() -> None:
    async def scenario() -> None:
        clock = Clock()
        status = Counted("x:1", clock)
        assert set(await asyncio.gather(*(status.problem() for _ in range(10)))) == {"problem 1"}
        clock.now += 1.1
        assert await status.problem() == "problem 2"

    asyncio.run(scenario())


def test_nobody_there() -> None:
    async def scenario() -> None:
        status = ClusterStatus(address := f"127.0.0.1:{free_port()}", Clock())
        problem = await asyncio.wait_for(status.problem(), 10)
        assert problem is not None and address in problem
        await status.close()

    asyncio.run(scenario())
