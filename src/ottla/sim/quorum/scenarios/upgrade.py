"""A quorum whose voters stand in the settings comes to write them into its log, and is changed from then on.

The upgrade is asked for again and again, of whoever leads, while nodes come and go: it happens once all voters have
told the leader of themselves, and survives whatever happens next.
"""

from functools import partial

from ottla.raft.event import Upgrade
from ottla.sim.quorum.voter_request import to_add
from ottla.sim.quorum.world import World
from ottla.wire.errors import BrokerError


def run(world: World) -> None:
    """Raise kraft.version, and add a voter."""
    cluster = world.form((1, 4), (1, 1), dynamic=False)
    world.settle()
    _keep_asking(world)
    voters = [id for id in cluster.nodes if id < 10]
    if len(voters) > 2 and world.draw(0, 1) and world.meets("a voter stops"):
        victim = world.choose(voters)
        cluster.run_for(world.draw(0, 5_000))
        cluster.nodes[victim].kill()
        cluster.run_for(world.draw(500, 4_000))
        cluster.nodes[victim].start()
    cluster.run_until(
        lambda: all(
            node.raft is not None and node.raft.replica.membership.can_change
            for node in cluster.nodes.values()
        ),
        "all have the voters in their logs",
    )
    joiner = next(node for node in cluster.nodes.values() if node.id > 10)
    while not (joiner.raft is not None and joiner.raft.voters.has(joiner.settings.key)):
        cluster.call(world.leader_id(), to_add(joiner), lambda _: None)
        cluster.run_for(1_000)
    world.grow(10)


def _keep_asking(world: World) -> None:
    cluster = world.cluster
    for node in cluster.nodes.values():
        if node.leads:
            try:
                node.step(Upgrade(1))
            except BrokerError:
                continue  # not all voters are known yet
    cluster.schedule.after(300, partial(_keep_asking, world))
