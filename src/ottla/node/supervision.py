"""A process beside the node: started, watched, started again when it dies, and stopped.

    WAITING --start()--> RUNNING --dies--> WAITING --after a while--> RUNNING
                            |                 |
                         stop()            stop()--> STOPPED
                            +--> STOPPED

U1  It is started anew soon after its first death, and later after each further one, up to a bound; one that ran for
    long counts as sound again.
U2  A process that says that it cannot start (`CANNOT_START`) is left alone: what it lacks does not come by itself.
U3  Whatever becomes of it, the node goes on.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence

from ottla.world.clock import Clock

CANNOT_START = 69  # EX_UNAVAILABLE of sysexits.h
_FIRST_DELAY_S = 0.1
_DELAY_S_MAX = 10.0
_SOUND_AFTER_S = 30.0
_STOP_S_MAX = 8.0


class SupervisedProcess:
    """One process; `name` is how reports call it."""

    def __init__(
        self, name: str, command: Sequence[str], clock: Clock, report: Callable[[str], None]
    ) -> None:
        self._name = name
        self._command = command
        self._clock = clock
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_stopping = False

    def start(self) -> None:
        """Start it, and see to it from now on."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Tell it to stop, and end it if it does not."""
        self._is_stopping = True
        if self._watching is None:
            return
        if self._process is None:
            self._watching.cancel()
        else:
            self._signal(signal.SIGTERM)
        _, left = await asyncio.wait([self._watching], timeout=_STOP_S_MAX)
        if left:
            self._report(f"the {self._name} did not stop in {_STOP_S_MAX:g} s and were ended")
            self._signal(signal.SIGKILL)
            await asyncio.wait(left)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _watch(self) -> None:
        delay_s = _FIRST_DELAY_S
        while not self._is_stopping:
            started = self._clock.monotonic()
            code = await self._run()
            if self._is_stopping:
                return
            if code == CANNOT_START:
                self._report(f"the {self._name} do not run; the broker goes on without them")
                return
            if self._clock.monotonic() - started >= _SOUND_AFTER_S:
                delay_s = _FIRST_DELAY_S
            how = f"were ended by signal {-code}" if code < 0 else f"ended with {code}"
            self._report(f"the {self._name} {how}; they are started again in {delay_s:g} s")
            await asyncio.sleep(delay_s)
            delay_s = min(_DELAY_S_MAX, delay_s * 2)

    async def _run(self) -> int:
        """Run it once, and return its exit code."""
        try:
            # Not in our session: a Ctrl-C is for us, and we say when it is to stop.
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            self._report(f"the {self._name} could not be started: {error}")
            return 1
        self._process = process
        if self._is_stopping:
            self._signal(signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            self._process = None
