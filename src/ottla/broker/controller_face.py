"""What the listener of a controller serves: the APIs of the quorum, and those of the active controller."""

from typing import Any

from ottla.broker.api import Api
from ottla.broker.apis import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    envelope,
    fetch_snapshot,
    metadata_fetch,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from ottla.broker.broker import Broker
from ottla.broker.served import CONTROLLER_APIS
from ottla.broker.versions import ApiVersions
from ottla.channel.connections import Connections

CONTROLLER_TABLE: tuple[Api, ...] = (
    *CONTROLLER_APIS,
    metadata_fetch.API,
    vote.API,
    begin_quorum_epoch.API,
    end_quorum_epoch.API,
    envelope.API,
    fetch_snapshot.API,
    add_raft_voter.API,
    remove_raft_voter.API,
    update_raft_voter.API,
)


class ControllerFace:
    """The broker, but for what it advertises, and whose connections it serves."""

    def __init__(self, broker: Broker, api_versions: ApiVersions, connections: Connections) -> None:
        self._broker = broker
        self.connections = connections
        self.api_versions = api_versions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)
