"""All nodes lose power at once. A majority that comes back has every committed record, and goes on."""

from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Kill all, start a majority, then the rest."""
    cluster = world.form((1, 5), (0, 2))
    world.settle()
    for node in cluster.nodes.values():
        node.kill()
    voters = [id for id in cluster.nodes if id < 10]
    back = sorted(voters, key=lambda _: world.entropy.random())[: len(voters) // 2 + 1]
    for id in back:
        cluster.nodes[id].start()
    world.grow(10, back)
    cluster.start_all()
    world.grow(5)
