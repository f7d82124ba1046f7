"""One node loses its disk and comes back under its old name, after a new leader was elected without it.

It has forgotten whom it voted for, so its own epoch and what it counted for are not held against it. Nothing that was
committed is lost all the same.
"""

from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Wipe a node, wait until another leads, and start it."""
    cluster = world.form((3, 5), (0, 2), dynamic=False)
    world.settle()
    victim = cluster.nodes[world.choose([node.id for node in cluster.up()])]
    victim.kill(wipe=True)
    cluster.run_until(
        lambda: cluster.agrees() and world.leader_id() != victim.id, "the others follow somebody else"
    )
    world.grow(5)
    victim.start()
    world.grow(10)
