"""A knock at a door tells a dead process from a silent one."""

import asyncio
from typing import Any

import pytest

from ottla.channel.peers import Address
from ottla.node.knock import Knocking


class Doors:
    """A network whose answers are given beforehand, one a knock; the last is given ever after."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.knocks = 0

    async def connect(self, host: str, port: int, protocol: Any) -> Any:
        self.knocks += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer
        visitor = protocol()
        visitor.connection_made(asyncio.Transport.__new__(Closed))
        return visitor


class Closed(asyncio.Transport):
    def close(self) -> None:
        pass


def visit(doors: Doors, address: Address | None = Address("host", 1)) -> list[int]:  # noqa: B008
    async def run() -> list[int]:
        refused: list[int] = []
        knocking = Knocking(doors, lambda node_id: address, refused.append)  # type: ignore[arg-type]
        knocking.visit(7)
        knocking.visit(7)
        await asyncio.gather(*knocking._visits.values())
        return refused

    return asyncio.run(run())


def test_a_refusal_is_told_once() -> None:
    doors = Doors(ConnectionRefusedError())
    assert visit(doors) == [7]
    assert doors.knocks == 1


def test_a_process_that_is_being_ended_is_found_by_the_next_knock() -> None:
    assert visit(Doors(None, None, ConnectionRefusedError())) == [7]


@pytest.mark.parametrize("answer", [None, TimeoutError(), OSError("no route to host")])
def test_anything_else_tells_nothing(answer: Exception | None) -> None:
    assert visit(Doors(answer)) == []


def test_who_has_no_address_is_not_visited() -> None:
    doors = Doors(ConnectionRefusedError())
    assert visit(doors, None) == []
    assert doors.knocks == 0
