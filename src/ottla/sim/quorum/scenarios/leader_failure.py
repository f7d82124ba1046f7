"""The leader stops, in order or by a loss of power; the others go on, and it catches up when it comes back."""

from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Stop the leader, and start it again."""
    cluster = world.form((3, 5), (0, 2))
    world.settle()
    leader_id = world.leader_id()
    if world.draw(0, 1):
        cluster.shut_down(leader_id)
        cluster.run_until(lambda: not cluster.nodes[leader_id].is_up, "the leader has stopped")
    else:
        cluster.nodes[leader_id].kill()
    world.grow(10)
    cluster.nodes[leader_id].start()
    world.grow(10)
