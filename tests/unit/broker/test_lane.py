"""The lane in C does what the dispatcher does, to the byte and to the counter, and leaves to it what is not its own."""

import struct
from dataclasses import replace
from functools import partial

import pytest

from ottla.broker.apis import fetch, produce
from ottla.broker.dispatch import Dispatcher
from ottla.broker.fetch_session import Wanted
from ottla.broker.lane import IS_HERE, lane
from ottla.broker.session import Session
from ottla.channel.connection import Connection
from ottla.channel.swift import SwiftConnection
from ottla.partition.flusher import AckFlusher, OsFlusher
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.fetch import FetchRequest
from ottla.world.clock import RealClock
from ottla.world.worker import InlineWorker
from tests.faults.seeds import seeded
from tests.unit.broker.conftest import Station
from tests.unit.broker.test_express import BATCHES, batch, request
from tests.unit.channel.test_connection import Transport, feed, frame
from tests.unit.log.topic_settings import OF_TOPICS

pytestmark = pytest.mark.skipif(not IS_HERE, reason="the compiled lane was not built")

PRODUCE, FETCH = 0, 1
TOPICS = ("t", "u")
COUNTED = (
    *("bytes_in", "bytes_out", "messages_in", "produce_requests", "produce_failures", "fetch_requests"),
    *("fetch_failures", "durable_offset", "high_watermark", "leader_epoch"),
)


class World:
    """One broker with several clients, served by the lane or without it."""

    def __init__(self, path, *, swift, flush="os", **topic):
        self.station = Station(path)
        broker = self.station.broker
        self.ids = {name: self.station.create(name, partitions=2, **topic).id for name in TOPICS}
        behind = AckFlusher([InlineWorker()], self.station.timers.call_soon, lambda *_: None)
        self.station.table._flusher = OsFlusher(behind) if flush == "os" else behind
        self.partitions = [self.station.table.by_name(name, index) for name in TOPICS for index in (0, 1)]
        for partition in self.partitions:
            partition._flusher = self.station.table._flusher
        self.reports = []
        self.dispatcher = Dispatcher((produce.API, fetch.API), broker, self.reports.append)
        self.general = []  # what the lane has left
        serve = self.dispatcher.serve
        if swift:
            broker.clock = RealClock()
            self.dispatcher.serve = self._left
            self._serve = serve
            serve = lane(self.dispatcher, broker)
            assert serve is not self.dispatcher.serve
        self._make = partial(
            SwiftConnection if swift else Connection, self.station.connections, "PLAINTEXT", serve
        )
        self.clients, self.transports = [None] * 4, [None] * 4
        for number in range(4):
            self.connect(number)
        self.clients[2].session.client_id = bytearray()  # it has not introduced itself

    def connect(self, number):
        """A client comes, or comes again."""
        client, transport = self._make(), Transport()
        client.session = Session("PLAINTEXT")
        client.session.client_id = bytearray(b"me")
        client.connection_made(transport)
        self.clients[number], self.transports[number] = client, transport

    def _left(self, connection, buffer, position, end):
        self.general.append(struct.unpack_from(">hh", buffer, position))
        self._serve(connection, buffer, position, end)

    def send(self, client, *messages):
        """Deliver requests in one read."""
        feed(self.clients[client], b"".join(frame(written(*message)) for message in messages))

    def state(self):
        """Everything that a request may change."""
        told = []
        for partition in self.partitions:
            log = partition.log
            told.append([getattr(partition, name) for name in COUNTED])
            told.append([len(partition.readers), len(partition.tailers), len(partition._waiters)])
            told.append((log.start_offset, log.end_offset, log.recovery_point))
            if not log.is_nascent:
                file = log._active.file
                told.append((file.size, file.read(0, file.size)))
                told.append((log._tail.ends, log._tail.positions, log._tail.newest_offset))
        for session in self.station.broker.fetch_sessions.opened.values():
            told.append((session.id, session.epoch, list(session.due), session.parked is None))
            names = [name for name in Wanted.__slots__ if name != "partition"]
            told += [[getattr(wanted, name) for name in names] for wanted in session.wanted.values()]
        told.append({key: route.count for key, route in self.dispatcher.routes.items()})
        told.append([sum(route.buckets) for route in self.dispatcher.routes.values()])
        told.append(
            [(len(each.owed), len(each.on_close), each.closed, each._corked) for each in self.clients]
        )
        told.append([bytes(each.written) for each in self.transports])
        told.append((len(self.station.timers.waiting), self.station.connections.due, len(self.reports)))
        return told


@pytest.fixture(params=["os", "ack"])
def worlds(request, tmp_path):
    return [World(tmp_path / name, swift=name == "a", flush=request.param) for name in "ab"]


def written(key, version, correlation, message):
    """A request as it is sent, without its size."""
    head = struct.pack(">hhih", key, version, correlation, 2) + b"me"
    if version >= (9 if key == PRODUCE else 12):
        head += b"\0"
    return head + message.encode(version)


def produced(world, version, records=None, *, name="t", index=0, acks=1, correlation=7, **fields):
    message = request(
        version, bytearray(records or batch()), world.ids[name], name=name, indexes=(index,), acks=acks
    )
    for field, value in fields.items():
        setattr(message, field, value)
    return PRODUCE, version, correlation, message


def fetched(
    world,
    version,
    at,
    *,
    name="t",
    indexes=(0,),
    min_bytes=1,
    isolation=0,
    epoch=-1,
    session=-1,
    session_id=0,
):
    topic = FetchRequest.FetchTopic(topic=name, topic_id=world.ids[name])
    topic.partitions = [
        FetchRequest.FetchTopic.FetchPartition(
            partition=index, fetch_offset=at, partition_max_bytes=1 << 20, current_leader_epoch=epoch
        )
        for index in indexes
    ]
    message = FetchRequest(
        max_wait_ms=500,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        isolation_level=isolation,
        session_epoch=session,
    )
    message.session_id = session_id
    message.topics = [topic] if indexes else []
    return FETCH, version, 9, message


def both(worlds, step):
    for world in worlds:
        step(world)
        world.station.settle()
    mine, theirs = (world.state() for world in worlds)
    assert mine == theirs


def warm(worlds):
    """The first batch makes the files and the routes, which is left to the dispatcher."""
    for version in range(9, 14):
        both(worlds, lambda world, version=version: world.send(0, produced(world, version)))
    worlds[0].general.clear()


@pytest.mark.parametrize("version", range(9, 14))
def test_a_plain_produce_is_served_by_the_lane_alone(worlds, version):
    warm(worlds)
    for acks in (1, -1):
        both(worlds, lambda world, acks=acks: world.send(0, produced(world, version, acks=acks)))
    assert worlds[0].general == []
    assert worlds[0].partitions[0].log.end_offset == 7


def share_a_moment(monkeypatch, worlds):
    """Stop the clocks, since answers may name the time."""
    moment = RealClock().now_ms()
    monkeypatch.setattr(RealClock, "now_ms", lambda _: moment)
    for world in worlds:
        world.station.clock.ms = moment


@pytest.mark.parametrize("kind", BATCHES)
def test_whatever_the_batch_both_say_the_same(worlds, monkeypatch, kind):
    share_a_moment(monkeypatch, worlds)
    warm(worlds)
    for _ in range(3):
        both(worlds, lambda world: world.send(0, produced(world, 9, BATCHES[kind] or b"\0")))
        both(worlds, lambda world: world.send(0, produced(world, 13, batch(3))))


@pytest.mark.parametrize("settings", OF_TOPICS)
def test_whatever_the_topic_both_say_the_same(tmp_path, monkeypatch, settings):
    """Of batches, of a client that waits for them, and of one that reads them afterwards."""
    worlds = [World(tmp_path / name, swift=name == "a", **OF_TOPICS[settings].keywords) for name in "ab"]
    share_a_moment(monkeypatch, worlds)
    known = {"producer_id": 6, "producer_epoch": 0, "base_sequence": 0}
    others = [each for kind in BATCHES for each in (BATCHES[kind] or b"\0", batch(3), BATCHES[kind] or b"\0")]
    for records in (batch(**known), *others):
        at = worlds[0].partitions[0].log.end_offset
        both(worlds, lambda world, at=at: world.send(1, fetched(world, 15, at)))
        both(worlds, lambda world, records=records: world.send(0, produced(world, 13, records)))
        both(worlds, lambda world, at=at: world.send(3, fetched(world, 15, at)))
    both(worlds, patience_ends)
    for world in worlds:
        world.station.close()


@pytest.mark.parametrize("version", range(13, 18))
@pytest.mark.parametrize("isolation", [0, 1])
def test_who_waits_for_the_record_is_answered_before_the_producer(tmp_path, version, isolation):
    worlds = [World(tmp_path / name, swift=name == "a") for name in "ab"]
    warm(worlds)
    for world in worlds:
        world.order = []
        for number, transport in enumerate(world.transports):
            write = transport.writelines
            transport.writelines = lambda parts, number=number, write=write, world=world: (
                world.order.append(number),
                write(parts),
            )
    both(worlds, lambda world: world.send(1, fetched(world, version, 5, isolation=isolation)))
    assert worlds[0].general == [(FETCH, version)], "the first of a version makes its route"
    worlds[0].general.clear()
    for size in (5, 1000, 1000):
        both(worlds, lambda world, size=size: world.send(0, produced(world, 9, batch(size))))
        at = worlds[0].partitions[0].log.end_offset
        assert all(world.order == [1, 0] for world in worlds)
        assert worlds[0].general == [], "the lane served them all"
        for world in worlds:
            world.order.clear()
        both(worlds, lambda world, at=at: world.send(1, fetched(world, version, at, isolation=isolation)))


def waiting(tmp_path, **wish):
    """Two worlds in which a client waits for the sixth record, parked by the lane in one of them."""
    worlds = [World(tmp_path / name, swift=name == "a") for name in "ab"]
    warm(worlds)
    both(worlds, lambda world: world.send(3, fetched(world, 15, 5)))
    worlds[0].general.clear()
    both(worlds, lambda world: world.send(1, fetched(world, 15, 5, **wish)))
    assert worlds[0].general == []
    assert len(worlds[0].partitions[0].readers) == 2
    return worlds


def patience_ends(world):
    world.station.clock.ms += 501


def test_patience_ends(tmp_path):
    worlds = waiting(tmp_path)
    both(worlds, patience_ends)
    assert not worlds[0].partitions[0].readers
    assert all(transport.written for transport in worlds[0].transports[1::2])


def test_nothing_is_shown_of_a_transaction_that_is_open(tmp_path):
    worlds = waiting(tmp_path, isolation=1)
    how = {"producer_id": 7, "producer_epoch": 0}

    def begin(world):
        world.partitions[0].append(batch(base_sequence=0, transactional=True, **how), world.station.clock.ms)

    def end(world):
        marker = end_transaction_batch(
            commit=True, coordinator_epoch=0, timestamp_ms=world.station.clock.ms, **how
        )
        world.partitions[0].append_own(marker, world.station.clock.ms)

    both(worlds, begin)
    both(worlds, lambda world: world.send(0, produced(world, 12)))
    assert not worlds[0].transports[1].written, "the reader of committed records waits"
    assert worlds[0].transports[3].written, "the other one does not"
    both(worlds, end)
    assert worlds[0].transports[1].written


def test_a_partition_that_fails_is_told(tmp_path):
    worlds = waiting(tmp_path)
    both(worlds, lambda world: world.partitions[0].fail(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)))
    assert not worlds[0].partitions[0].readers


def test_a_new_epoch_is_told(tmp_path):
    worlds = waiting(tmp_path, epoch=0)
    both(worlds, lambda world: world.partitions[0].lead(1))
    assert worlds[0].transports[1].written


@pytest.mark.parametrize(
    "wish",
    [
        {"min_bytes": 1000},
        {"indexes": (0, 1)},
        {"session": 0},
        {"epoch": 0},
    ],
    ids=str,
)
def test_other_readers_are_woken_as_always(worlds, wish):
    warm(worlds)
    both(worlds, lambda world: world.send(1, fetched(world, 15, 5, **wish)))
    both(worlds, lambda world: world.send(2, fetched(world, 15, 5)))
    for _ in range(20):
        both(worlds, lambda world: world.send(0, produced(world, 9)))
    assert all(world.transports[1].written for world in worlds)


@pytest.mark.parametrize("isolation", [0, 1])
def test_a_session_waits_for_one_of_its_partitions(tmp_path, isolation):
    worlds = [World(tmp_path / name, swift=name == "a") for name in "ab"]
    warm(worlds)
    both(worlds, lambda world: world.send(1, fetched(world, 15, 0, indexes=(0, 1), session=0)))
    ((session_id, _),) = worlds[0].station.broker.fetch_sessions.opened.items()
    how = {"session_id": session_id, "isolation": isolation}
    both(worlds, lambda world: world.send(1, fetched(world, 15, 5, session=1, **how)))
    both(worlds, lambda world: world.send(0, produced(world, 12)))
    worlds[0].general.clear()
    for count in range(3):
        epoch, at = 2 + 2 * count, 6 + count
        both(
            worlds,
            lambda world, epoch=epoch, at=at: world.send(1, fetched(world, 15, at, session=epoch, **how)),
        )
        both(worlds, patience_ends)
        both(
            worlds,
            lambda world, epoch=epoch: world.send(
                1, fetched(world, 15, 0, indexes=(), session=epoch + 1, **how)
            ),
        )
        assert len(worlds[0].clients[1].owed) == 1
        both(worlds, lambda world: world.send(0, produced(world, 12, batch(100))))
        assert not worlds[0].clients[1].owed
    assert worlds[0].general == [], "the lane served them all"
    both(worlds, lambda world: world.send(1, fetched(world, 15, 9, session=8, **how)))
    both(worlds, lambda world: world.send(0, produced(world, 12, index=1)))
    both(worlds, lambda world: world.send(1, fetched(world, 15, 9, indexes=(), session=9, **how)))
    both(worlds, lambda world: world.send(0, produced(world, 12), produced(world, 12, index=1)))
    both(worlds, lambda world: world.send(1, fetched(world, 15, 9, session=7, **how)))


def test_an_answer_waits_behind_the_one_before_it(worlds):
    """A fetch that waits on the producer's own connection comes first there, whatever becomes of the produce."""
    warm(worlds)
    both(worlds, lambda world: world.send(0, fetched(world, 15, 0, name="u")))
    before = len(worlds[0].transports[0].written)
    both(worlds, lambda world: world.send(0, produced(world, 12)))
    assert len(worlds[0].clients[0].owed) == 2
    assert len(worlds[0].transports[0].written) == before
    both(worlds, lambda world: world.send(1, produced(world, 12, name="u")))
    assert not worlds[0].clients[0].owed


def test_a_client_that_waits_for_its_own_record(worlds):
    warm(worlds)
    both(worlds, lambda world: world.send(0, fetched(world, 15, 5), produced(world, 12), produced(world, 12)))
    both(worlds, lambda world: world.send(0, produced(world, 12)))


def test_a_burst_is_answered_once(tmp_path):
    worlds = waiting(tmp_path)
    both(worlds, lambda world: world.send(0, *[produced(world, 12)] * 3))
    (answer,) = worlds[0].transports[1].parts
    assert len(answer) > 3 * len(batch())


def test_what_stands_behind_a_fetch_leaves_with_its_answer(tmp_path):
    worlds = waiting(tmp_path)
    both(worlds, lambda world: world.send(1, produced(world, 12, name="u")))
    both(worlds, lambda world: world.send(1, produced(world, 12, name="u")))
    assert len(worlds[0].clients[1].owed) == 3
    both(worlds, lambda world: world.send(0, produced(world, 12)))
    assert not worlds[0].clients[1].owed


def test_a_follower_that_waits_hears_of_the_record(worlds):
    warm(worlds)

    class Follower:
        def __init__(self):
            self.woken = 0

        def wake(self, partition):
            self.woken += 1

    followers = [Follower(), Follower()]
    for world, follower in zip(worlds, followers, strict=True):
        world.partitions[0].tailers[follower] = None
    both(worlds, lambda world: world.send(0, produced(world, 12)))
    assert followers[0].woken == followers[1].woken > 0


def test_a_reader_that_has_gone_is_not_answered(worlds):
    warm(worlds)
    both(worlds, lambda world: world.send(1, fetched(world, 15, 5)))
    both(worlds, lambda world: world.clients[1].connection_lost(None))
    both(worlds, lambda world: world.send(0, produced(world, 12)))
    assert not worlds[0].partitions[0].readers


def test_what_goes_wrong_costs_the_connection_and_no_more(worlds, monkeypatch):
    warm(worlds)

    def broken(*_):
        raise RuntimeError("broken flusher")

    for name in ("appended", "flush"):
        monkeypatch.setattr(OsFlusher, name, broken)
    for world in worlds:
        log = world.partitions[0].log
        log.config = replace(log.config, flush_messages=1)
        if isinstance(world.station.table._flusher, AckFlusher):
            world.station.table._flusher._later = broken
        world.send(0, produced(world, 12))
        assert world.clients[0].closed
        assert "broken" in world.reports[-1]
        assert world.station.broker.failures == 1


@pytest.mark.parametrize("followers", [0, 1])
def test_a_reader_that_breaks_costs_the_producer_nothing(worlds, followers):
    warm(worlds)

    class Broken:
        def wake(self, partition):
            raise RuntimeError("broken reader")

    for world in worlds:
        world.partitions[0].readers[Broken()] = None
        if followers:
            world.partitions[0].tailers[Broken()] = None
    both(worlds, lambda world: world.send(0, produced(world, 12)))
    for world in worlds:
        assert not world.clients[0].closed
        assert world.partitions[0].high_watermark == world.partitions[0].log.end_offset
        assert world.partitions[0].log._home.bugs.total == 1 + 2 * followers


class Chance:
    """Requests at random: the same for every world, since they are drawn once."""

    def __init__(self, chance):
        self.random = chance
        self.sequences = {5: 0, 6: 0}

    def requests(self, world):
        """Draw what one client sends in one read, as functions of a world."""
        return [
            self._fetch(world) if self.random.random() < 0.3 else self._produce()
            for _ in range(self.random.choice((1, 1, 1, 2, 5)))
        ]

    def _fetch(self, world):
        chance = self.random
        name, index = chance.choice(TOPICS), chance.randrange(2)
        end = world.station.table.by_name(name, index).log.end_offset
        version, at = chance.randint(11, 17), max(0, end - chance.choice((0, 0, 0, 1, 9)))
        opened = list(world.station.broker.fetch_sessions.opened.values())
        if opened and chance.random() < 0.6:
            session = chance.choice(opened)
            epoch = session.epoch if chance.random() < 0.95 else session.epoch + 1
            indexes = chance.choice(((), (index,), (index,), (0, 1)))
            how = {
                "session_id": session.id,
                "session": epoch,
                "indexes": indexes,
                "isolation": chance.randrange(2),
            }
            return lambda world: fetched(world, max(13, version), at, name=name, **how)
        how = {
            "indexes": chance.choice(((index,), (index,), (0, 1))),
            "isolation": chance.randrange(2),
            "min_bytes": chance.choice((0, 1, 1, 300)),
            "session": chance.choice((-1, -1, 0)),
        }
        return lambda world: fetched(world, version, at, name=name, **how)

    def _produce(self):
        chance = self.random
        how, acks = {}, chance.choice((1, -1, 0))
        producer = chance.choice((None, None, 5, 6))
        if producer is not None:
            sequence = self.sequences[producer] if chance.random() < 0.8 else chance.randrange(5)
            self.sequences[producer] = sequence + 1
            how = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
        records = batch(chance.choice((0, 10, 100, 1000, 5000)), **how)
        if chance.random() < 0.05:
            records[-1] ^= 1
        if producer is not None or records[-1] & 1:
            acks = acks or 1  # a refusal of what asks for no answer costs the connection
        version, name, index = chance.randint(8, 13), chance.choice(TOPICS), chance.randrange(2)
        return lambda world: produced(world, version, records, name=name, index=index, acks=acks)


@pytest.mark.parametrize("flush", ["os", "ack"])
def test_any_order_of_requests_gives_the_same(tmp_path, flush):
    chance = Chance(seeded(__file__))
    worlds = [World(tmp_path / name, swift=name == "a", flush=flush) for name in "ab"]
    for _ in range(300):
        client, requests = chance.random.randrange(4), chance.requests(worlds[0])

        def step(world, client=client, requests=requests):
            world.send(client, *(each(world) for each in requests))

        both(worlds, step)
        if chance.random.random() < 0.1:
            both(worlds, patience_ends)
    assert not any(client.closed for client in worlds[0].clients)
    assert sum(each.produce_requests for each in worlds[0].partitions) > 200
    assert worlds[0].general.count((PRODUCE, 9)) < worlds[0].dispatcher.routes[9].count, (
        "some was served by the lane"
    )


@pytest.mark.parametrize("cut", [False, True], ids=["changed", "cut"])
@pytest.mark.parametrize(
    "make",
    [partial(produced, version=9), partial(produced, version=13), partial(fetched, version=15, at=5)],
    ids=["produce by name", "produce by id", "fetch"],
)
def test_bytes_that_are_not_as_they_should_be(tmp_path, make, cut):
    worlds = [World(tmp_path / name, swift=name == "a") for name in "ab"]
    warm(worlds)
    chance = seeded(__file__)
    size = len(written(*make(worlds[0])))

    def step(world, at, change):
        data = bytearray(written(*make(world)))
        if cut:
            del data[at:]
        else:
            data[at] ^= change
        feed(world.clients[0], frame(bytes(data)))
        patience_ends(world)  # nobody waits into the next step

    key = make(worlds[0])[0]
    for at in range(size):
        change = chance.randrange(1, 256)
        if at == 1 and key ^ change == 18:
            continue  # it would be ApiVersions, which every node has in its table, and these worlds do not
        both(worlds, partial(step, at=at, change=change))
        for world in worlds:
            if world.clients[0].closed:
                world.clients[0].connection_lost(None)
                world.connect(0)
