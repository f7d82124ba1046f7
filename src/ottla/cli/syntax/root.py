"""Every command and option, as `--help`, the reference and completion show them.

A command's own words are imported only when it is named: a line of the shell names one, and help lists them all.
"""

import importlib
from collections.abc import Container

from ottla import __version__
from ottla.cli.syntax.parser import Parser, add_cluster_options

# In the order of the help: first what runs a node, then what talks to one. Behind each, where its words are.
COMMANDS = {
    "dev": ("run one node on this machine, with nothing to configure", "node:add_dev"),
    "server": ("run a node as a Kafka properties file says", "node:add_server"),
    "services": ("run the HTTP services beside a cluster", "services:add_services"),
    "storage": ("prepare and inspect data directories", "node:add_storage"),
    "topic": ("list, make, change and delete topics", "topic:add_topic"),
    "produce": ("write records to a topic", "produce:add_produce"),
    "consume": ("print records of topics", "consume:add_consume"),
    "group": ("list, inspect, reset and delete groups", "group:add_group"),
    "config": ("show and change settings of topics, brokers and groups", "config:add_config"),
    "cluster": ("show the cluster as a whole", "cluster:add_cluster"),
    "quorum": ("show and change who keeps the cluster's metadata", "quorum:add_quorum"),
    "reassign": ("move partitions from broker to broker", "reassign:add_reassign"),
    "leader-election": (
        "have partitions led by their preferred leaders",
        "leader_election:add_leader_election",
    ),
    "perf": ("measure how fast a cluster is, from here", "perf:add_perf"),
    "dump-log": ("show what the files of a log say, Ottla's or Kafka's", "dump_log:add_dump_log"),
    "profile": ("keep the addresses and settings of clusters under names", "profile:add_profile"),
    "completion": (
        "print what teaches a shell to complete commands, options, topics and groups",
        "completion:add_completion",
    ),
}


def parser(words: Container[str] = COMMANDS) -> Parser:
    """Return the parser of the command line, complete for those commands that are among `words`."""
    root = Parser(
        prog="ottla",
        description="An event streaming platform that speaks Apache Kafka's protocol.",
        epilog="Kafka's own clients and tools work with it unchanged.",
    )
    root.add_argument("--version", action="version", version=f"ottla {__version__}", help="print the version")
    add_cluster_options(root, root=True)
    commands = root.add_subparsers(dest="command", metavar="command", required=True, parser_class=Parser)
    for name, (help, place) in COMMANDS.items():
        if name in words:
            module, _, function = place.partition(":")
            getattr(importlib.import_module(f"ottla.cli.syntax.{module}"), function)(commands, name, help)
        else:
            commands.add_parser(name, help=help, add_help=False)
    return root
