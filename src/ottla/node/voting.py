"""The part of a node in the metadata quorum, as its settings have it: a voter, or one who follows."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.controller.controller import Controller
from ottla.log.directory import LogDirectory
from ottla.node.settings import Settings
from ottla.node.world import World
from ottla.quorum.driver import Wires
from ottla.quorum.quorum import Quorum
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.settings import Node
from ottla.raft.voters import Address, Voter, Voters
from ottla.wire.uuid import ZERO_UUID
from ottla.world.worker import Worker

# Servers that are known by their address alone have ids from here down.
_BOOTSTRAP_ID = -2


def make_quorum(
    settings: Settings,
    values: Mapping[str, Any],
    world: World,
    directory: LogDirectory,
    worker: Worker,
    wires: Wires,
    failed: Callable[[OSError], None],
) -> Quorum[Controller]:
    """The metadata log in `directory`, to be started."""
    assert directory.identity is not None, "the directory was checked"
    addresses = tuple(Address(each.name, each.host, each.port) for each in settings.advertised_controllers)
    own = {(each.host, each.port) for each in addresses}
    listener = settings.controller_names[0]
    voters = None
    if settings.voters:
        voters = Voters.of(
            Voter(
                id,
                ZERO_UUID,
                addresses if id == settings.node_id and addresses else (Address(listener, host, port),),
            )
            for id, (host, port) in settings.voters.items()
        )
    surroundings = Surroundings(
        world.disk,
        world.clock,
        worker,
        world.timers.call_soon,
        world.report,
        failed,
        world.timers.call_later,
        world.entropy.below,
    )
    return Quorum(
        surroundings,
        QuorumSettings(
            settings.node_id,
            directory.path,
            directory.identity.directory_id,
            addresses,
            voters,
            segment_bytes=values["metadata.log.segment.bytes"],
            segment_ms=values["metadata.log.segment.ms"],
            snapshot_bytes=values["metadata.log.max.record.bytes.between.snapshots"],
            snapshot_interval_ms=values["metadata.log.max.snapshot.interval.ms"],
            retention_bytes=values["metadata.max.retention.bytes"],
            retention_ms=values["metadata.max.retention.ms"],
            cluster_id=directory.identity.cluster_id,
            bootstrap=tuple(
                Node(_BOOTSTRAP_ID - number, *server)
                for number, server in enumerate(settings.bootstrap_servers)
                if server not in own
            ),
            listener=listener,
            can_vote=settings.is_controller,
            auto_join=values["controller.quorum.auto.join.enable"],
            election_timeout_ms=values["controller.quorum.election.timeout.ms"],
            election_backoff_ms_max=values["controller.quorum.election.backoff.max.ms"],
            fetch_timeout_ms=values["controller.quorum.fetch.timeout.ms"],
            request_timeout_ms=values["controller.quorum.request.timeout.ms"],
            retry_backoff_ms=values["controller.quorum.retry.backoff.ms"],
        ),
        wires,
    )
