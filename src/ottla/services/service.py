"""A service as the process knows it: a name, a port, and how its application is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.http.application import Application, ApplicationOptions
from ottla.services.cluster import ClusterStatus


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a service is given. `addresses` fills as the services of the process bind their ports."""

    bootstrap: str
    cluster: ClusterStatus
    options: ApplicationOptions
    addresses: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Service:
    """One HTTP service."""

    name: str
    title: str
    port: int
    build: Callable[[ServiceContext], Application[Any]]
