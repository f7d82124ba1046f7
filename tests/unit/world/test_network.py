"""TCP of the operating system: what cannot be connected to is an OSError, whatever was given."""

import asyncio

import pytest
import uvloop

from ottla.world.network import RealNetwork

HOSTS = ["127.0.0.1\0.example", "\ud800", "a" * 300, "."]


@pytest.mark.parametrize(
    ("host", "port"), [*((host, 9) for host in HOSTS), ("127.0.0.1", 1 << 16), ("127.0.0.1", -1)]
)
@pytest.mark.parametrize("factory", [uvloop.new_event_loop, None], ids=["uvloop", "asyncio"])
def test_an_address_that_is_none_is_an_error_of_the_network(host, port, factory):
    async def connect() -> None:
        await asyncio.wait_for(RealNetwork().connect(host, port, asyncio.Protocol), 20)

    with asyncio.Runner(loop_factory=factory) as runner, pytest.raises(OSError):
        runner.run(connect())
