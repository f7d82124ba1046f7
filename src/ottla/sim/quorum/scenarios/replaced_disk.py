"""A voter loses its disk and comes back with another. It is no voter then; it asks to be one again, and becomes it."""

from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Replace the disk of a voter at once, without waiting for anything."""
    cluster = world.form((3, 4), (0, 1), dynamic=True)
    world.settle()
    victim_id = world.choose([id for id in cluster.nodes if id < 10])
    cluster.nodes[victim_id].kill()
    cluster.replace_disk(victim_id, auto_join=True)
    cluster.nodes[victim_id].start()
    if world.draw(0, 1) and world.meets("another stops"):
        other_id = world.choose([id for id in cluster.nodes if id < 10 and id != victim_id])
        cluster.nodes[other_id].kill()
        cluster.run_for(world.draw(100, 2_000))
        cluster.nodes[other_id].start()
    node = cluster.nodes[victim_id]
    cluster.run_until(
        lambda: node.raft is not None and node.raft.voters.has(node.settings.key),
        f"node {victim_id} votes with its new disk",
    )
    world.grow(10)
