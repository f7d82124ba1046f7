"""Nodes that start together elect a leader, and all come to the same watermark."""

from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Start one to five voters."""
    cluster = world.form((1, 5), (0, 3))
    cluster.run_until(cluster.agrees, "all follow one leader")
    world.grow(10)
