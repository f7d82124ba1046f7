"""One leader is cut off, and as soon as there is another, so is that one, while the first comes back."""

from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Cut off two leaders, one after the other."""
    cluster = world.form((3, 5), (0, 2))
    world.settle()
    first = world.leader_id()
    _isolate(world, first)
    cluster.run_until(lambda: world.leader_id() != first, "somebody else leads")
    second = world.leader_id()
    cluster.network.heal()
    _isolate(world, second)
    world.grow(10, cluster.nodes.keys() - {second})
    world.recover()


def _isolate(world: World, id: int) -> None:
    others = set(world.cluster.nodes.keys() - {id})
    world.cluster.network.cut({id}, others)
    world.cluster.network.cut(others, {id})
