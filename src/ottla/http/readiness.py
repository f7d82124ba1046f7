"""Whether a service is ready, and if not, why: what it depends on is asked, each within a bound."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

_CHECK_S_MAX = 2.0


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    """Something a service cannot do without; `problem` says what is wrong with it, or None."""

    name: str
    problem: Callable[[], Awaitable[str | None]]


async def problems(checks: Sequence[ReadinessCheck]) -> dict[str, str]:
    """Return what is wrong, by the name of the check."""
    found = await asyncio.gather(*(_ask(check) for check in checks))
    return {check.name: problem for check, problem in zip(checks, found, strict=True) if problem is not None}


async def _ask(check: ReadinessCheck) -> str | None:
    try:
        async with asyncio.timeout(_CHECK_S_MAX):
            return await check.problem()
    except TimeoutError:
        return f"no answer within {_CHECK_S_MAX:g} s"
    except Exception as error:  # noqa: BLE001  # whatever it is, the service is not ready
        return str(error) or type(error).__name__
