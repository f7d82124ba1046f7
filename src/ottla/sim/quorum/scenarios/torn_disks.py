"""Nodes lose power again and again, one or all, with slow disks, so that much is lost and torn each time."""

from ottla.sim.quorum.world import World

ROUNDS = 8


def run(world: World) -> None:
    """Pull plugs."""
    cluster = world.form((3, 5), (0, 1))
    if world.meets("slow syncs"):
        for node in cluster.nodes.values():
            node.sync_ms = (5, 60)
    world.settle()
    for round in range(ROUNDS):
        if world.meets(f"fault {round}"):
            count = world.draw(1, len(cluster.nodes))
            for id in sorted(cluster.nodes, key=lambda _: world.entropy.random())[:count]:
                if cluster.nodes[id].is_up:
                    cluster.nodes[id].kill()
            cluster.run_for(world.draw(0, 1_000))
            for node in cluster.nodes.values():
                if not node.is_up:
                    node.start()
        cluster.run_for(world.draw(10, 3_000))
    world.recover()
