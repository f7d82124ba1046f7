"""Questions to another node end, whatever it does."""

import asyncio
from typing import Any

from ottla.channel.link import LinkLost
from ottla.channel.peers import Address, Peer
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class Dark:
    """A network in which nobody ever answers."""

    async def connect(self, host: str, port: int, protocol: Any) -> Any:
        await asyncio.sleep(3600)


def test_who_hangs_up_waits_for_no_connection() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        peer = Peer(Dark(), loop, lambda: Address("host", 1), "me")  # type: ignore[arg-type]
        answers: list[object] = []
        peer.ask(HeartbeatRequest(group_id="g"), HeartbeatResponse, answers.append)
        await asyncio.sleep(0)
        assert answers == []
        peer.hang_up()
        assert [type(answer) for answer in answers] == [LinkLost]
        peer.ask(HeartbeatRequest(group_id="g"), HeartbeatResponse, answers.append)
        await asyncio.sleep(0)
        assert len(answers) == 1, "it is tried anew"
        peer.close()
        assert len(answers) == 2

    asyncio.run(run())
