"""Two leaders in a row change the voters, each at a moment when only some hear of it.

The first adds a fifth voter to four, and only those two have it in their logs. The second is elected by the other
three, is asked at once to remove one of them, and reaches only one more. Had the second leader not to commit something
of its epoch first, its change would be committed by two, and the first leader elected again by the other three: the
flaw of single-server changes that was found after Raft's publication.
"""

from ottla.sim.quorum.voter_request import to_add, to_remove
from ottla.sim.quorum.world import World


def run(world: World) -> None:
    """Let two changes race."""
    cluster = world.form((4, 4), (1, 1), dynamic=True)
    network, nodes = cluster.network, cluster.nodes
    network.loss = network.repeats = network.spikes = 0.0
    world.settle()
    first = world.leader_id()
    joiner = next(id for id in nodes if id > 10)
    others = [id for id in nodes if id not in (first, joiner)]
    cluster.call(first, to_add(nodes[joiner]), lambda _: None)
    # The record is written when the joiner has said what it speaks; by then nobody else hears of it.
    _part(world, {first, joiner}, set(others))
    cluster.run_until(
        lambda: any(nodes[id].leads for id in others) or world.leader_id() != first, "another leads", 20_000
    )
    second = world.leader_id()
    if second not in others:
        world.recover()
        return
    friend = world.choose([id for id in others if id != second])
    removed = next(id for id in others if id not in (second, friend))
    _part(world, {second, friend}, set(nodes) - {second, friend})
    cluster.call(second, to_remove(nodes[removed]), lambda _: None)
    cluster.run_for(world.draw(200, 2_500))
    if world.draw(0, 1):
        _part(world, {first, joiner, removed}, {second, friend})
    else:
        # The second leader gets its majority, and the fifth voter is cut off the log of the first.
        _part(world, {first, joiner}, {second, friend, removed})
    cluster.run_for(world.draw(2_000, 9_000))
    world.recover()


def _part(world: World, some: set[int], rest: set[int]) -> None:
    network = world.cluster.network
    network.heal()
    network.cut(some, rest)
    network.cut(rest, some)
