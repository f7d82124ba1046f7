"""Voters are added and removed, leaders among them, while nodes stop and links are cut."""

from functools import partial

from ottla.sim.quorum.voter_request import to_add, to_remove
from ottla.sim.quorum.world import World

ROUNDS = 8
VOTERS_MIN = 2


def run(world: World) -> None:
    """Ask for changes, many of them at a bad moment, and see that the voters who are left go on."""
    cluster = world.form((2, 4), (2, 2), dynamic=True)
    world.settle()
    for round in range(ROUNDS):
        _ask(world)
        what = world.draw(0, 5)
        if what <= 2 and world.meets(f"fault {round}"):
            victim = world.choose(cluster.nodes)
            others = set(cluster.nodes.keys() - {victim})
            if what == 0 and cluster.nodes[victim].is_up and len(cluster.up()) > len(cluster.nodes) - 2:
                cluster.nodes[victim].kill()
                cluster.schedule.after(world.draw(100, 3_000), partial(_start, world, victim))
            elif what == 1:
                cluster.network.cut({victim}, others)
                cluster.schedule.after(world.draw(500, 4_000), cluster.network.heal)
            else:
                cluster.network.cut(others, {victim})
                cluster.schedule.after(world.draw(500, 4_000), cluster.network.heal)
        cluster.run_for(world.draw(20, 1_500))
    world.recover()


def _start(world: World, id: int) -> None:
    if not world.cluster.nodes[id].is_up:
        world.cluster.nodes[id].start()


def _ask(world: World) -> None:
    """Ask whoever seems to lead for a change, sometimes for two at once."""
    cluster = world.cluster
    leaders = [node.id for node in cluster.nodes.values() if node.leads]
    for leader_id in leaders:
        raft = cluster.nodes[leader_id].raft
        assert raft is not None
        for _ in range(world.draw(1, 2)):
            node = cluster.nodes[world.choose(cluster.nodes)]
            if node.id not in raft.voters.by_id:
                request = to_add(node, ack_when_committed=bool(world.draw(0, 1)))
                cluster.call(leader_id, request, lambda _: None)
            elif len(raft.voters.by_id) > VOTERS_MIN:
                cluster.call(leader_id, to_remove(node), lambda _: None)
