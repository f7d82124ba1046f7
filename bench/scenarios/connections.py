"""Thousands of clients that say hello and then nothing: what they cost in memory."""

import contextlib
import resource

from bench.stage import Stage
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.peers.connection import Connection

SPARE_FILES = 200


def connections(stage: Stage) -> dict[str, float]:
    count = stage.sizes.connections
    _allow_files(count + SPARE_FILES)
    with stage.server() as server, contextlib.ExitStack() as stack:
        hello = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
        for _ in range(20):  # the first clients make the server load what every client needs
            with Connection(server.port) as line:
                line.ask(hello, ApiVersionsResponse, 3)
        before = server.resident_bytes()
        for _ in range(count):
            line = stack.enter_context(Connection(server.port))
            line.ask(hello, ApiVersionsResponse, 3)
        return {"connections.mb": (server.resident_bytes() - before) / 1e6}


def _allow_files(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
