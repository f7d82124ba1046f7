"""`ottla dev`: one node on this machine, formatted on first use, and three things to try."""

import argparse
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from ottla import __version__
from ottla.cli.error import CommandError
from ottla.cli.server import serve, warn
from ottla.cli.services.installed import INSTALL, are_installed
from ottla.cli.storage import own_addresses
from ottla.log.identity import IdentityError, read_identity
from ottla.node.dev import dev_properties
from ottla.node.node import Node
from ottla.node.settings import Settings
from ottla.node.supervision import SupervisedProcess
from ottla.quorum.storage import Format, FormatError, format_storage
from ottla.wire.uuid import uuid_text
from ottla.world.clock import RealClock
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy
from ottla.world.network import free_port, is_free
from ottla.world.parent import process_id

GREETING = """\
Ottla {version} is ready.

  Kafka clients  {kafka}
  services       {services}
  metrics        {metrics}
  data           {data} ({flush})

Three things to try in another terminal; every other Kafka client and tool works, too:

  write   {write}
  read    {read}
  look    {look}

And one to watch, words counted on Spark as they are written:

  count   {count}

Ctrl-C stops it; the data stays.
"""

DEFAULT_PORT = 9092
PORT_MAX = 65_535
MEANING = {"ack": "acknowledged means on disk", "os": "the operating system decides when it reaches the disk"}


def run_dev(options: argparse.Namespace) -> int:
    """Format the data directory if it is new, then serve until told to stop."""
    properties = dev_properties(
        data=options.data,
        port=options.port,
        flush=options.flush,
        metrics_port=metrics_port(options.metrics_port),
        controller_port=controller_port(options.port),
    )
    settings = Settings.from_properties(properties)
    warn(settings)
    prepare(settings)
    # Chosen here as well: a process that is started again keeps its port.
    services_port = options.services_port or free_port()
    with_services = not options.no_services and are_installed()

    def greet(node: Node) -> None:
        print(greeting(node, options, services_port), end="", flush=True)

    def start_services(node: Node) -> SupervisedProcess:
        command = services_command(kafka_address(node), services_port)
        return SupervisedProcess("services", command, node.world.clock, node.report)

    try:
        return serve(settings, greet, start_services if with_services else None)
    except CommandError as error:
        if str(error).startswith("cannot listen"):
            error.hint = "another process has the port: choose another one with --port N, or stop that process"
        raise


def services_command(bootstrap: str, port: int) -> list[str]:
    """How the process of the services is started; it ends with this one."""
    program = [sys.executable, "-m", "ottla.cli.main", "services"]
    return [
        *program,
        "--bootstrap-server",
        bootstrap,
        "--port",
        f"index={port}",
        "--parent",
        str(process_id()),
    ]


def metrics_port(wanted: int) -> int | None:
    """Return a port for the metrics page, which the greeting names; None where the one that is wanted is taken."""
    if not wanted:
        return free_port()
    if is_free(wanted):
        return wanted
    print(f"warning: port {wanted} is taken, so there is no metrics page", file=sys.stderr)
    print("hint: --metrics-port N chooses another port, and 0 any that is free", file=sys.stderr)
    return None


def controller_port(port: int) -> int:
    """Return the port above that of the clients, or any where that is taken: only this node speaks to it."""
    if not port:
        return 0
    return port + 1 if port < PORT_MAX and is_free(port + 1) else free_port()


def prepare(settings: Settings) -> None:
    """Make the data directory that of a cluster of its own, unless it is one already."""
    disk, entropy = RealDisk(), RealEntropy()
    try:
        identity = read_identity(disk, settings.metadata_log_dir)
        wish = Format(
            cluster_id=identity.cluster_id if identity else uuid_text(entropy.uuid()),
            node_id=settings.node_id,
            directories=settings.directories,
            metadata_directory=settings.metadata_log_dir,
            standalone=own_addresses(settings),
            ignore_formatted=True,
        )
        format_storage(disk, RealClock(), entropy, wish)
    except (FormatError, IdentityError) as error:
        raise CommandError(str(error), "choose another directory with --data") from None
    except OSError as error:
        what = f"{error.filename}: {error.strerror}"
        raise CommandError(what, "choose another directory with --data") from None


def kafka_address(node: Node) -> str:
    """Where Kafka clients connect."""
    first = next(each for each in node.endpoints if each.name not in node.settings.controller_names)
    return f"{first.host}:{first.port}"


def greeting(node: Node, options: argparse.Namespace, services_port: int) -> str:
    """The words that `ottla dev` says once it serves."""
    settings = node.settings
    kafka = kafka_address(node)
    is_usual = kafka.endswith(f":{DEFAULT_PORT}")
    if options.no_services:
        services = "not started (--no-services)"
    elif not are_installed():
        services = f"not installed: {INSTALL}"
    else:
        services = f"http://127.0.0.1:{services_port}, in a moment"
    listener = settings["ottla.metrics.listener"]
    metrics = f"http://{listener}/metrics" if listener else "none: the port is taken"
    command = own_command()
    where = "" if is_usual else f" -b {kafka}"
    return GREETING.format(
        version=__version__,
        kafka=kafka,
        services=services,
        metrics=metrics,
        data=settings.log_dirs[0],
        flush=MEANING[settings["ottla.flush"]],
        write=f"{command} produce hello 'Hello from Ottla'{where}",
        read=f"{command} consume hello -n 1{where}",
        look=f"{command} topic describe hello{where}",
        count=_example("" if is_usual else f" --bootstrap-server {kafka}"),
    )


def _example(where: str) -> str:
    """How to run the example of streams, which wants Spark."""
    command = f"{sys.executable} -m ottla.streams.examples.word_count{where}"
    return (
        command if find_spec("pyspark") else f"{sys.executable} -m pip install 'ottla[spark]', then {command}"
    )


def own_command() -> str:
    """Return how this program can be called again: by its name, where that leads here, or as it was called now."""
    called = Path(sys.argv[0])
    if called.name != "ottla":
        return f"{sys.executable} -m ottla.cli.main"
    found = shutil.which("ottla")
    return "ottla" if found is not None and Path(found).resolve() == called.resolve() else str(called)
