"""`ottla cluster start`: several nodes on this machine, each a process, run until Ctrl-C.

Every node has a directory with a `server.properties` in it. `ottla server` on that file runs the same node by hand: so
one can be stopped, and started again, while the others go on.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from ottla import __version__
from ottla.cli.error import OK, CommandError
from ottla.log.identity import IdentityError, read_identity
from ottla.node.settings import Settings
from ottla.quorum.storage import Format, FormatError, format_storage
from ottla.wire.uuid import uuid_text
from ottla.world.clock import RealClock
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy

HOST = "127.0.0.1"
REPLICAS_MAX = 3
FAILED = 1

GREETING = """\
Ottla {version}: a cluster of {count} nodes.

  Kafka clients  {bootstrap}
  data           {data}, one directory a node, with its server.properties

Ctrl-C stops it; the data stays.{kill}
"""
KILL = " To see it go on without a node: kill -9 {pid}"
# With fewer, those that are left are no majority.
KILLABLE_MIN = 3


def start_cluster(options: argparse.Namespace) -> int:
    """Prepare the directories, and run all nodes until told to stop, or until one fails to start."""
    data = Path(options.data).absolute()
    files = prepare(data, options.nodes, options.port)
    return asyncio.run(_run(data, files, options.port))


def node_properties(data: Path, id: int, count: int, port: int) -> dict[str, str]:
    """The settings of one node: clients at `port` and up, controllers above them."""
    replicas = min(count, REPLICAS_MAX)
    voters = ",".join(f"{each}@{HOST}:{port + count + each - 1}" for each in range(1, count + 1))
    return {
        "node.id": str(id),
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://{HOST}:{port + id - 1},CONTROLLER://{HOST}:{port + count + id - 1}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters,
        "log.dirs": str(data / f"node-{id}" / "data"),
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(max(1, replicas - 1)),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(max(1, replicas - 1)),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(max(1, replicas - 1)),
    }


def prepare(data: Path, count: int, port: int) -> list[Path]:
    """Format what is not formatted yet, as one cluster, and return each node's properties file."""
    disk, entropy = RealDisk(), RealEntropy()
    files, cluster_id = [], ""
    for id in range(1, count + 1):
        properties = node_properties(data, id, count, port)
        settings = Settings.from_properties(properties)
        try:
            identity = read_identity(disk, settings.metadata_log_dir)
            cluster_id = cluster_id or (identity.cluster_id if identity else uuid_text(entropy.uuid()))
            wish = Format(
                cluster_id=cluster_id,
                node_id=id,
                directories=settings.directories,
                metadata_directory=settings.metadata_log_dir,
                ignore_formatted=True,
            )
            format_storage(disk, RealClock(), entropy, wish)
        except (FormatError, IdentityError) as error:
            raise CommandError(str(error), "choose another directory with --data") from None
        except OSError as error:
            what = f"{error.filename}: {error.strerror}"
            raise CommandError(what, "choose another directory with --data") from None
        path = data / f"node-{id}" / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        files.append(path)
    return files


async def _run(data: Path, files: list[Path], port: int) -> int:
    loop = asyncio.get_running_loop()
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end.set)
    nodes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ottla.cli.main", "server", str(path)),
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        for path in files
    ]
    stopping = asyncio.ensure_future(_stop(end, nodes))
    greeting = asyncio.ensure_future(_greet(data, port, nodes))
    codes = await asyncio.gather(*(_watch(number, node) for number, node in enumerate(nodes, 1)))
    stopping.cancel()
    await greeting
    return OK if end.is_set() or not any(codes) else FAILED


async def _greet(data: Path, port: int, nodes: list[asyncio.subprocess.Process]) -> None:
    """Once every node serves or has ended, say where those are that serve; hand on what nodes print."""
    serving = await asyncio.gather(*map(_hand_on_line, nodes))
    there = [number for number, serves in enumerate(serving) if serves]
    if there:
        bootstrap = ",".join(f"{HOST}:{port + number}" for number in there)
        kill = KILL.format(pid=nodes[there[0]].pid) if len(there) >= KILLABLE_MIN else ""
        words = GREETING.format(
            version=__version__, count=len(nodes), bootstrap=bootstrap, data=data, kill=kill
        )
        print(words, end="", flush=True)
    await asyncio.gather(*map(_hand_on_all, nodes))


async def _hand_on_line(node: asyncio.subprocess.Process) -> bool:
    """Print the line by which a node says that it serves; False when it ends without one."""
    assert node.stdout is not None
    line = await node.stdout.readline()
    print(line.decode(errors="backslashreplace"), end="", flush=True)
    return bool(line)


async def _hand_on_all(node: asyncio.subprocess.Process) -> None:
    while await _hand_on_line(node):
        pass


async def _stop(end: asyncio.Event, nodes: list[asyncio.subprocess.Process]) -> None:
    """Once told to, stop every node that still runs."""
    await end.wait()
    for node in nodes:
        if node.returncode is None:
            node.send_signal(signal.SIGTERM)


async def _watch(number: int, node: asyncio.subprocess.Process) -> int:
    code = await node.wait()
    if code:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
        print(f"node {number} {how}; the others go on", file=sys.stderr, flush=True)
    return code
