"""The process behind `Broker`: prepares the directory, serves, says where in one line of JSON, ends with its parent.

python -m ottla.testing.process DIRECTORY PORT [KEY=VALUE …]
"""

import asyncio
import json
import signal
import sys

from ottla.cli.dev import prepare
from ottla.cli.error import CommandError
from ottla.cli.properties import overrides
from ottla.metadata.settings.error import SettingError
from ottla.node.dev import dev_properties
from ottla.node.node import Node
from ottla.node.server import run
from ottla.node.settings import Settings
from ottla.node.storage import StartError
from ottla.world.network import free_port


def main(arguments: list[str]) -> int:
    """Serve until told to stop, or until the parent is gone."""
    directory, port, *pairs = arguments
    base = dev_properties(data=directory, port=0, metrics_port=free_port())
    base["listeners"] = base["listeners"].replace("127.0.0.1:0,", f"127.0.0.1:{port},", 1)
    try:
        settings = Settings.from_properties(
            base | {"group.initial.rebalance.delay.ms": "0"} | overrides(pairs)
        )
        prepare(settings)
        return run(settings, _ready)
    except (SettingError, StartError, CommandError) as error:
        hint = getattr(error, "hint", "")
        print(f"{error}\nhint: {hint}" if hint else error, file=sys.stderr)
        return 1


def _ready(node: Node) -> None:
    first = next(each for each in node.endpoints if each.name not in node.settings.controller_names)
    metrics = f"http://{node.settings['ottla.metrics.listener']}/metrics"
    print(json.dumps({"port": first.port, "metrics": metrics}), flush=True)
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _parent_gone)


def _parent_gone() -> None:
    # Nothing is ever written to us: whatever there is to read is the end.
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
