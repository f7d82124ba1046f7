"""Runs services in one process until told to stop.

    build and start each service -> SIGTERM or SIGINT -> refuse what is new, finish what is under way, end

P1  A port that is taken ends the process, with what to do about it: half of the services would be a riddle.
P2  Nothing here holds state: the process may be killed at any time, and another may run beside it.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ottla import __version__
from ottla.http.application import ApplicationOptions
from ottla.http.metrics.process import process
from ottla.http.metrics.text import Family, gauge
from ottla.http.readiness import ReadinessCheck
from ottla.http.server import HttpServer
from ottla.http.settings import HttpSettings
from ottla.services.cluster import ClusterStatus
from ottla.services.service import Service, ServiceContext
from ottla.world.clock import RealClock
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy
from ottla.world.network import raise_descriptor_limit


class PortTaken(Exception):
    """A service cannot have its port."""

    def __init__(self, service: Service, host: str, port: int, why: str) -> None:
        super().__init__(f"the service {service.name} cannot listen on {host}:{port}: {why}")
        self.service = service
        self.port = port


@dataclass(frozen=True, slots=True)
class Wish:
    """Which services to run, against which cluster."""

    services: tuple[Service, ...]
    bootstrap: str
    settings: HttpSettings
    ports: Mapping[str, int]


def run(wish: Wish, ready: Callable[[Mapping[str, str]], None]) -> None:
    """Serve until SIGTERM or SIGINT. `ready` hears the addresses; PortTaken says why it cannot start."""
    import uvloop

    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(wish, ready))


async def _serve(wish: Wish, ready: Callable[[Mapping[str, str]], None]) -> None:
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    clock = RealClock()
    cluster = ClusterStatus(wish.bootstrap, clock)
    addresses: dict[str, str] = {}
    options = ApplicationOptions(
        clock,
        RealEntropy(),
        limits=wish.settings.limits,
        readiness=(ReadinessCheck("cluster", cluster.problem),),
        families=_process_families(clock.now_ms()),
        has_access_log=wish.settings.has_access_log,
    )
    servers: list[HttpServer] = []
    try:
        for service in wish.services:
            servers.append(_start(service, wish, ServiceContext(wish.bootstrap, cluster, options, addresses)))
            addresses[service.name] = servers[-1].address
        ready(addresses)
        await end.wait()
    finally:
        await asyncio.gather(*(server.stop() for server in servers))
        await cluster.close()


def _start(service: Service, wish: Wish, context: ServiceContext) -> HttpServer:
    settings = wish.settings
    port = wish.ports.get(service.name, service.port)
    server = HttpServer(
        service.build(context),
        settings.host,
        port,
        limits=settings.limits,
        tls=settings.tls,
        has_http2=settings.has_http2,
    )
    try:
        server.start()
    except OSError as error:
        raise PortTaken(service, settings.host, port, error.strerror or str(error)) from None
    return server


def _process_families(start_ms: int) -> Callable[[], Iterable[Family]]:
    disk = RealDisk()

    def families() -> Iterable[Family]:
        yield gauge("ottla_info", "The version of this software.").add(1, version=__version__)
        yield from process(disk, start_ms)

    return families
