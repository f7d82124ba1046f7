"""A quorum of five falls into two and three: the three go on, the two commit nothing, and all meet again."""

from ottla.sim.quorum.world import World
from ottla.sim.violation import Violation


def run(world: World) -> None:
    """Part two voters from three, and join them again."""
    cluster = world.form((5, 5), (0, 2))
    world.settle()
    minority = {world.choose({1, 2, 3, 4, 5})}
    minority.add(world.choose({1, 2, 3, 4, 5} - minority))
    majority = {1, 2, 3, 4, 5} - minority
    outside = cluster.nodes.keys() - minority
    cluster.network.cut(minority, set(outside))
    cluster.network.cut(set(outside), minority)
    world.grow(10, majority)
    if cluster.highest_watermark(minority) >= cluster.highest_watermark(majority):
        raise Violation("progress", "two of five voters go on committing")
    world.recover()
