"""The workload that makes a history: processes that send, poll and transact, forget their clients, and in the end
read all.

D1  What is begun is recorded before, what became of it after. A client that is in doubt says so (`Doubtful`), and is
    replaced.
D2  Each value is written once, and names its writer: the process and a number.
D3  In the end one process reads every key from its beginning to what is known to be there.

The same driver works on brokers made of a dict (`tests/unit/sim/history`) and on real ones (`tests/cluster`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.sim.history.op import Deed, Poll, Send, Step
from ottla.sim.history.recorder import Recorder

SENDS_MAX = 8
STEPS_MAX = 4
ABORTED_PERCENT = 10
Below = Callable[[int], int]  # a number below a limit, by chance


class Refused(Exception):
    """It is proved that nothing of it was applied, but that these steps read what they read."""

    def __init__(self, reason: str, steps: Sequence[Step] = ()) -> None:
        super().__init__(reason)
        self.steps = tuple(steps)


class Doubtful(Exception):
    """Nobody knows whether it was applied; `steps` are what is known of it."""

    def __init__(self, reason: str, steps: Sequence[Step] = ()) -> None:
        super().__init__(reason)
        self.steps = tuple(steps)


class Client(Protocol):
    """A producer and a consumer of what is committed. Every call ends in bounded time, or by one of the above."""

    def assign(self, keys: Sequence[str], *, from_start: bool) -> None:
        """Read these keys from now on, from their beginning or from their end."""

    def poll(self) -> Poll:
        """What there is to read, maybe nothing."""

    def send(self, sends: Sequence[Send]) -> Sequence[Send]:
        """Write, outside of any transaction, and say at which offsets."""

    def transact(self, steps: Sequence[Step], *, abort: bool) -> Sequence[Step]:
        """Do these in one transaction, and commit it; or call it off, which is Refused if it went well."""

    def close(self) -> None:
        """End at once, without finishing anything."""


class Process:
    """One process of the workload. `make` gives it a new client; one that transacts does not send otherwise."""

    def __init__(
        self,
        number: int,
        make: Callable[[], Client],
        keys: Sequence[str],
        recorder: Recorder,
        below: Below,
        *,
        transacts: bool,
    ) -> None:
        self.number = number
        self._make = make
        self._keys = tuple(keys)
        self._recorder = recorder
        self._below = below
        self._transacts = transacts
        self._client: Client | None = None
        self._sent = 0

    def step(self) -> None:
        """Do one thing, by chance."""
        dice = self._below(256)
        if dice == 0:
            self.crash()
        elif dice <= 4:
            self._assign(self._some_keys(), from_start=False)
        elif dice <= 96:
            self.poll()
        elif self._transacts:
            self._transact()
        else:
            self._send()

    def crash(self) -> None:
        """Forget the client, with whatever it has under way."""
        self._begin("crash")
        if self._client is not None:
            self._client.close()
            self._client = None
        self._recorder.record(self.number, "ok", "crash")

    def poll(self) -> None:
        """Read on."""
        self._begin("poll")
        self._end("poll", lambda client: [client.poll()])

    def read_all(self, give_up: Callable[[], bool]) -> None:
        """Read every key from its beginning to what is known to be there, unless it is time to give up."""
        self.crash()
        self._assign(self._keys, from_start=True)
        came_to: dict[str, int] = {}
        wanted = dict(self._recorder.highest)
        while any(came_to.get(key, -1) < offset for key, offset in wanted.items()) and not give_up():
            self._begin("poll")
            for step in self._end("poll", lambda client: [client.poll()]):
                if isinstance(step, Poll):
                    for key, offset, _ in step.seen:
                        came_to[key] = max(offset, came_to.get(key, -1))

    def _assign(self, keys: tuple[str, ...], *, from_start: bool) -> None:
        self._recorder.record(self.number, "invoke", "assign", keys=keys)
        self._own().assign(keys, from_start=from_start)
        self._recorder.record(self.number, "ok", "assign", keys=keys)

    def _send(self) -> None:
        sends = [self._new_send() for _ in range(1 + self._below(SENDS_MAX))]
        self._begin("send", sends)
        self._end("send", lambda client: client.send(sends))

    def _transact(self) -> None:
        steps: list[Step] = [
            self._new_send() if self._below(2) else Poll() for _ in range(1 + self._below(STEPS_MAX))
        ]
        abort = self._below(100) < ABORTED_PERCENT
        self._begin("txn", steps)
        self._end("txn", lambda client: client.transact(steps, abort=abort))

    def _begin(self, deed: Deed, steps: Sequence[Step] = ()) -> None:
        self._recorder.record(self.number, "invoke", deed, steps)

    def _end(self, deed: Deed, do: Callable[[Client], Sequence[Step]]) -> Sequence[Step]:
        try:
            steps = do(self._own())
        except Refused as refused:
            self._recorder.record(self.number, "fail", deed, refused.steps, error=str(refused))
            return refused.steps
        except Doubtful as doubtful:
            self._recorder.record(self.number, "info", deed, doubtful.steps, error=str(doubtful))
            if deed != "poll":
                self.crash()
            return doubtful.steps
        self._recorder.record(self.number, "ok", deed, steps)
        return steps

    def _own(self) -> Client:
        if self._client is None:
            self._client = self._make()
            self._client.assign(self._keys, from_start=False)
        return self._client

    def _new_send(self) -> Send:
        self._sent += 1
        return Send(self._keys[self._below(len(self._keys))], f"{self.number}.{self._sent}")

    def _some_keys(self) -> tuple[str, ...]:
        return tuple(key for key in self._keys if self._below(2)) or self._keys
