"""An application called as a server would call it, without a server."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from ottla.http.application import Application, ApplicationOptions
from ottla.world.clock import RealClock
from ottla.world.entropy import SeededEntropy


@dataclass
class Answer:
    """What came back. `is_whole` is False where the answer was left unfinished."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def application(routes: Any, service: Any = None, **options: Any) -> Application[Any]:
    return Application("test", routes, service, ApplicationOptions(RealClock(), SeededEntropy(1), **options))


class Call:
    """One request: `pieces` are those of its body; `hangs` keeps the body from ending."""

    def __init__(
        self,
        method: str,
        target: str,
        *,
        headers: dict[str, str] | None = None,
        pieces: tuple[bytes, ...] = (b"",),
        hangs: bool = False,
        takes: bool = True,
    ) -> None:
        path, _, query = target.partition("?")
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "client": ("10.0.0.1", 5),
            "server": ("127.0.0.1", 80),
            "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        }
        self._pieces = list(pieces)
        self._hangs = hangs
        self._takes = takes
        self.taken = 0
        self.messages: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        if self._pieces:
            piece = self._pieces.pop(0)
            self.taken += len(piece)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces) or self._hangs}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: dict[str, Any]) -> None:
        if not self._takes:
            await asyncio.Event().wait()
        self.messages.append(message)

    async def of(self, app: Application[Any]) -> Answer:
        await app(self.scope, self.receive, self.send)
        return self.answer

    @property
    def answer(self) -> Answer:
        if not self.messages:
            return Answer(0, {}, b"", False)
        start, *bodies = self.messages
        return Answer(
            start["status"],
            {name.decode().lower(): value.decode() for name, value in start["headers"]},
            b"".join(each.get("body", b"") for each in bodies),
            bool(bodies) and not bodies[-1].get("more_body", False),
        )


def ask(app: Application[Any], method: str, target: str, **options: Any) -> Answer:
    return asyncio.run(asyncio.wait_for(Call(method, target, **options).of(app), 10))
