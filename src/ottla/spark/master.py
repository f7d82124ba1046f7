"""Where Spark runs: in this process's own machine, or on a cluster."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.spark.failure import SparkFailure

_LOCAL = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:,\s*\d+)?\])?")
_CLUSTER = re.compile(r"spark://\S+:\d+(?:,\S+:\d+)*|k8s://\S+|yarn|local-cluster\[\d+,\s*\d+,\s*\d+\]")
_KINDS = "local, local[4], local[*], spark://host:port, yarn or k8s://https://host:port"


@dataclass(frozen=True, slots=True)
class Master:
    """A master by the name Spark knows it by."""

    url: str
    is_local: bool

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where a standalone cluster's masters are; empty for others."""
        if not self.url.startswith("spark://"):
            return []
        pairs = [each.rpartition(":") for each in self.url.removeprefix("spark://").split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]

    def cores(self, machine: int, settings: Mapping[str, str]) -> int | None:
        """Return how many tasks run at once, or None for a cluster that is not told; `machine` is what this one has."""
        if self.is_local:
            asked = (_LOCAL.fullmatch(self.url) or {"cores": None})["cores"] or "1"
            return machine if asked == "*" else int(asked)
        if "spark.cores.max" in settings:
            return int(settings["spark.cores.max"])
        if "spark.executor.instances" in settings:
            return int(settings["spark.executor.instances"]) * int(settings.get("spark.executor.cores", "1"))
        return None


def parse(url: str) -> Master:
    """Return the master that is meant, or raise SparkFailure."""
    if _LOCAL.fullmatch(url):
        return Master(url, is_local=True)
    if _CLUSTER.fullmatch(url):
        return Master(url, is_local=False)
    if url.startswith("sc://"):
        raise SparkFailure(
            f"{url} is a Spark Connect server, which makes its sessions itself",
            hint="make the session by SparkSession.builder.remote(…), and hand it to ottla.spark.register()",
        )
    raise SparkFailure(f"no such master: {url}", hint=f"a master is {_KINDS}")
