"""Nothing passes between the leader and the others: they elect another, and the old one steps down."""

from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Cut the leader off, wait for the others, and let it come back."""
    cluster = world.form((3, 5), (0, 2))
    world.settle()
    leader_id = world.leader_id()
    others = cluster.nodes.keys() - {leader_id}
    cluster.network.cut({leader_id}, set(others))
    cluster.network.cut(set(others), {leader_id})
    world.grow(10, others)
    cluster.run_until(lambda: not cluster.nodes[leader_id].leads, "the old leader has stepped down")
    world.recover()
