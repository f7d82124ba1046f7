"""Nodes take snapshots and remove what lies before them; whoever is too far behind fetches one, over many pieces."""

from functools import partial

from ottla.sim.quorum.world import World

ROUNDS = 6


def run(world: World) -> None:
    """Keep a node away while logs are cut, and let it come back; kill nodes while they fetch."""
    cluster = world.form((3, 5), (0, 2))
    world.settle()
    _keep_taking(world)
    for round in range(ROUNDS):
        away = world.choose(cluster.nodes)
        if world.meets(f"fault {round}"):
            if world.draw(0, 1):
                cluster.nodes[away].kill()
            else:
                others = set(cluster.nodes.keys() - {away})
                cluster.network.cut({away}, others)
                cluster.network.cut(others, {away})
        cluster.run_for(world.draw(300, 2_500))
        cluster.network.heal()
        cluster.start_all()
        cluster.run_for(world.draw(5, 300))
    world.recover()


def _keep_taking(world: World) -> None:
    cluster = world.cluster
    for node in cluster.up():
        if world.draw(0, 2) == 0:
            node.take_snapshot()
        if world.draw(0, 2) == 0:
            node.trim()
    cluster.schedule.after(world.draw(50, 400), partial(_keep_taking, world))
