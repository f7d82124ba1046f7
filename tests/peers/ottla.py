"""Ottla as a process, started as a user starts it."""

import sys

from tests.peers.server import Server


class OttlaServer(Server):
    """`ottla server` on Kafka's own properties file."""

    name = "ottla"

    def format_command(self) -> list[str]:
        arguments = ["format", "-t", self.cluster_id, "-c", str(self.properties_path), "--standalone"]
        return [sys.executable, "-m", "ottla.cli.main", "storage", *arguments]

    def start_command(self) -> list[str]:
        return [sys.executable, "-m", "ottla.cli.main", "server", str(self.properties_path)]
