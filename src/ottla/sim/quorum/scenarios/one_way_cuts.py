"""Links are cut in one direction alone: some are heard and do not hear, others hear and are not heard."""

from ottla.sim.quorum.world import World

ROUNDS = 6


def run(world: World) -> None:
    """Cut links at random, mend some, and see that a quorum which can speak to each other is not kept from leading."""
    cluster = world.form((3, 5), (0, 1))
    world.settle()
    for round in range(ROUNDS):
        cluster.network.heal()
        if world.meets(f"fault {round}"):
            for _ in range(world.draw(1, 3)):
                source = world.choose(cluster.nodes)
                target = world.choose(cluster.nodes)
                everybody = set(cluster.nodes)
                kind = world.draw(0, 3)
                if kind == 0:
                    cluster.network.cut({source}, everybody)
                elif kind == 1:
                    cluster.network.cut(everybody, {target})
                else:
                    cluster.network.cut({source}, {target})
        cluster.run_for(world.draw(200, 5_000))
    world.recover()
