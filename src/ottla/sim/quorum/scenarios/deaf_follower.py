"""A follower is heard by all and hears nobody. It asks for votes again and again, and must not disturb the others.

Without pre-votes (KIP-996) it would raise the epoch with every try, and depose a leader that has a majority.
"""

from ottla.sim.quorum.world import World
from ottla.sim.violation import Violation


def run(world: World) -> None:
    """Deafen one follower for a while."""
    cluster = world.form((3, 5))
    world.settle()
    cluster.run_until(cluster.agrees, "all follow one leader")
    leader = cluster.nodes[world.leader_id()]
    assert leader.raft is not None
    epoch = leader.raft.epoch
    deaf = world.choose([id for id in cluster.nodes if id != leader.id])
    others = set(cluster.nodes.keys() - {deaf})
    network = cluster.network
    network.loss = network.repeats = network.spikes = 0.0
    cluster.run_for(1_000)
    epoch_before = leader.raft.epoch if leader.raft is not None else 0
    if not leader.leads or epoch_before != epoch:
        return  # an election was under way already
    network.cut(others, {deaf})
    world.grow(30, others)
    cluster.run_for(world.draw(3_000, 12_000))
    if not leader.leads or leader.raft is None or leader.raft.epoch != epoch:
        raise Violation("pre-vote", f"a deaf follower has deposed the leader of epoch {epoch}")
    world.recover()
