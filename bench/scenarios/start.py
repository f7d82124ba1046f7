"""From the start of the process to the first record acknowledged, on a directory that was closed cleanly."""

import time

from bench import raw
from bench.stage import Stage


def start(stage: Stage) -> dict[str, float]:
    with stage.server() as server:
        raw.make_topic(server, "start")
        raw.until_acknowledged(server, "start")
        server.stop()
        began = time.perf_counter()
        server.start(wait=False)
        raw.until_acknowledged(server, "start")
        return {"start.first_ack_s": time.perf_counter() - began}
