"""A request that arrives in pieces is served as one that arrives whole is: readers first, in C and in Python."""

import pytest

from ottla.broker.lane import IS_HERE
from tests.unit.broker.test_lane import World, fetched, produced, written
from tests.unit.channel.test_connection import feed, frame

pytestmark = pytest.mark.skipif(not IS_HERE, reason="the compiled lane was not built")


def in_pieces(world, message, cut):
    """Deliver a request in two reads."""
    data = frame(written(*message))
    for piece in (data[:cut], data[cut:]):
        feed(world.clients[0], piece)
    world.station.settle()


@pytest.mark.parametrize("swift", [True, False], ids=["compiled", "python"])
@pytest.mark.parametrize("before", ["last", "not last"])
@pytest.mark.parametrize("cut", [2, 4, 40])
def test_who_waits_is_answered_before_the_producer(tmp_path, swift, before, cut):
    """Whatever the frame was that came before: what is remembered of the last read must not count for this one."""
    world = World(tmp_path, swift=swift)
    world.send(0, produced(world, 12))
    world.station.settle()
    order = []
    for number, transport in enumerate(world.transports):
        write = transport.writelines
        transport.writelines = lambda parts, number=number, write=write: (order.append(number), write(parts))
    world.send(1, fetched(world, 15, 1))
    if before == "not last":  # the frame before it was not the last one of its read
        data = frame(written(*fetched(world, 15, 0, name="u")))
        feed(world.clients[3], data + data[:10])
        assert world.station.connections.at_end is False
    in_pieces(world, produced(world, 12), cut)
    assert order == [1, 0]
    assert world.station.connections.due is None
