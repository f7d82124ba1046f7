"""Bytes held by all connections together: who waits, in which order, and who is closed."""

import random

import pytest

from ottla.channel.budget import CHECK_S, STILL_BYTES, Budget, RequestBudget
from ottla.channel.send_queue import SendQueue

MIB = 1 << 20


class Peer:
    """A connection that moves as the test says."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.moved = 0
        self.aborted = False

    def taken_bytes(self) -> int:
        return self.moved

    def received_bytes(self) -> int:
        return self.moved

    def abort(self) -> None:
        self.aborted = True


class Loop:
    """Turns and timers that come when the test says."""

    def __init__(self) -> None:
        self.soon = []
        self.later = []

    def turn(self) -> None:
        soon, self.soon[:] = list(self.soon), []
        for callback in soon:
            callback()

    def second(self) -> None:
        later, self.later[:] = list(self.later), []
        for delay, callback in later:
            assert delay == CHECK_S
            callback()
        while self.soon:
            self.turn()

    def make(self, kind: type[Budget], bytes_max: int) -> Budget:
        return kind(bytes_max, self.soon.append, lambda delay, callback: self.later.append((delay, callback)))


@pytest.fixture
def loop() -> Loop:
    return Loop()


def test_who_comes_while_there_is_no_room_waits_and_goes_on_in_order(loop):
    budget, holder, told = loop.make(Budget, 100), Peer(), []
    assert not budget.is_full
    budget.hold(holder, 100)
    assert budget.is_full and budget.share() == 0
    waiting = [Peer(str(number)) for number in range(40)]
    for each in waiting:
        budget.wait(each, lambda each=each: told.append(each.name))
    loop.turn()
    assert told == []
    budget.forget(waiting[3])
    budget.hold(holder, 10)
    assert budget.is_full  # for who comes now: others were first
    while loop.soon:
        loop.turn()
    assert told == [each.name for number, each in enumerate(waiting) if number != 3]
    assert not budget.is_full and budget.waiting == 0


def test_who_goes_on_may_use_the_room_up_again(loop):
    budget, holder, told = loop.make(Budget, 100), Peer(), []
    budget.hold(holder, 100)
    second = Peer()
    budget.wait(second, lambda: (told.append(1), budget.hold(second, 100)))
    budget.wait(Peer(), lambda: told.append(2))
    budget.hold(holder, 0)
    loop.turn()
    assert told == [1] and budget.total == 100 and budget.waiting == 1
    budget.forget(second)
    loop.turn()
    assert told == [1, 2] and budget.total == 0


def test_a_thousand_holders_leave_room_for_the_next(loop):
    budget = loop.make(Budget, 256 * MIB)
    for _ in range(1000):
        share = budget.share()
        assert share > 0
        budget.hold(Peer(), share)
    assert not budget.is_full


def test_who_takes_next_to_nothing_is_closed_once_somebody_waits(loop):
    budget, told = loop.make(Budget, 100), []
    large, small, quick = Peer(), Peer(), Peer()
    budget.hold(large, 50)
    budget.hold(small, 5)
    budget.hold(quick, 45)
    for _ in range(5):  # much is held, and nobody waits
        quick.moved += STILL_BYTES
        large.moved += STILL_BYTES - 1
        loop.second()
    assert not large.aborted and budget.aborted == 0
    budget.wait(Peer(), lambda: told.append(1))
    assert large.aborted and not small.aborted and not quick.aborted
    budget.forget(large)
    loop.turn()
    assert told == [1] and budget.aborted == 1


def test_who_holds_much_has_to_take_in_proportion_while_others_wait(loop):
    budget, told = loop.make(Budget, 256 * MIB), []
    slow = [Peer() for _ in range(3)]
    quick, fair = Peer(), Peer()
    for each in slow:
        budget.hold(each, 80 * MIB)
    budget.hold(quick, 20 * MIB)
    budget.hold(fair, 3 * MIB)
    budget.wait(Peer(), lambda: told.append(1))
    for _ in range(4):
        for each in slow:
            each.moved += 2 * STILL_BYTES
        quick.moved += 4 * MIB
        fair.moved += 2 * STILL_BYTES
        loop.second()
    assert any(each.aborted for each in slow) and not quick.aborted and not fair.aborted
    for each in slow:
        if each.aborted:
            budget.forget(each)
    loop.turn()
    assert told == [1]


def test_what_has_gone_of_a_large_answer_does_not_count():
    queue, records = SendQueue(), memoryview(bytes(2 * MIB))
    answer = bytearray(random.randbytes(5 * MIB + 3))
    queue.put([answer, records])
    assert queue.size_bytes == 7 * MIB + 3
    taken = b""
    while len(taken) < 3 * MIB:
        taken += b"".join(queue.piece(256 << 10))
    assert queue.size_bytes <= 4 * MIB + 3
    assert taken + b"".join(queue.rest()) == answer + bytes(records)


def test_checks_end_when_little_is_held(loop):
    budget, holder = loop.make(Budget, 100), Peer()
    budget.hold(holder, 60)
    assert len(loop.later) == 1
    budget.hold(holder, 40)
    loop.second()
    assert not loop.later
    budget.hold(holder, 80)
    assert len(loop.later) == 1


def test_one_request_at_a_time_goes_beyond_the_limit(loop):
    requests = loop.make(RequestBudget, 100)
    first, second, third, told = Peer(), Peer(), Peer(), []
    assert requests.admits(first, 60)
    requests.hold(first, 60)
    assert requests.admits(second, 60)  # it is the one
    requests.hold(second, 60)
    assert requests.admits(second, 500)
    assert not requests.admits(first, 10)
    requests.wait(first, lambda: told.append("first"))
    assert not requests.admits(third, 1)
    requests.wait(third, lambda: told.append("third"))
    loop.turn()
    assert told == []
    requests.hold(second, 0)
    loop.turn()
    assert told == ["first", "third"] and requests.waiting == 0


def test_requests_that_come_no_further_do_not_stop_the_others_for_good(loop):
    requests, told = loop.make(RequestBudget, 100), []
    still, other = Peer(), Peer()
    assert requests.admits(still, 200)
    requests.hold(still, 200)
    requests.hold(other, 4)
    requests.wait(other, lambda: told.append(1))
    for _ in range(4):
        other.moved += STILL_BYTES
        loop.second()
    assert still.aborted and not other.aborted
    requests.forget(still)
    loop.turn()
    assert told == [1]


def test_whoever_waits_goes_on_while_there_is_room_though_one_is_beyond_the_limit(loop):
    requests, told = loop.make(RequestBudget, 100), []
    first, second, third, fourth = Peer(), Peer(), Peer(), Peer()
    for each in (first, second):
        assert requests.admits(each, 60)
        requests.hold(each, 60)
    requests.wait(third, lambda: (told.append("third"), requests.hold(third, 20)), 20)
    requests.wait(fourth, lambda: told.append("fourth"), 50)
    loop.turn()
    assert told == []
    requests.forget(first)  # there is room again, and the second, which was beyond the limit, goes on slowly
    loop.turn()
    assert told == ["third"] and requests.waiting == 1
    requests.hold(third, 0)
    loop.turn()
    assert told == ["third"]  # there is no room for so much
    requests.hold(second, 0)
    loop.turn()
    assert told == ["third", "fourth"] and not requests.waiting


def test_requests_that_wait_for_a_thread_count_and_nobody_goes_beyond_the_limit_over_them(loop):
    requests, told = loop.make(RequestBudget, 100), []
    first, second = Peer(), Peer()
    requests.add_queued(90)
    assert requests.total == 90 and not requests.admits(first, 20)
    requests.hold(first, 4)
    requests.wait(first, lambda: told.append("first"), 20)
    requests.wait(second, lambda: told.append("second"), 20)
    for _ in range(10):
        loop.second()
    assert told == [] and not first.aborted, "who cannot go on is not to blame"
    requests.add_queued(-60)
    loop.turn()
    assert told == ["first", "second"] and requests.total == 34
    requests.add_queued(-30)
    assert requests.queued == 0 and requests.admits(second, 500)  # and one may, as before


def test_a_large_request_that_comes_slowly_is_closed_while_others_wait(loop):
    requests, told = loop.make(RequestBudget, 256 * MIB), []
    slow = [Peer() for _ in range(3)]
    for each in slow:
        assert requests.admits(each, 100 * MIB)
        requests.hold(each, 100 * MIB)
    honest = Peer()
    requests.hold(honest, 256 << 10)
    assert not requests.admits(honest, 1 * MIB)
    requests.wait(honest, lambda: told.append(1), 1 * MIB)
    for _ in range(4):
        for each in slow:
            each.moved += 2 * STILL_BYTES
        loop.second()
        for each in slow:
            if each.aborted:
                requests.forget(each)
    loop.turn()
    assert told == [1] and not honest.aborted


@pytest.mark.parametrize("kind", [Budget, RequestBudget])
def test_whatever_happens_the_sum_is_right_and_nobody_waits_for_good(loop, kind):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    budget = loop.make(kind, 1000)
    peers: dict[Peer, int] = {}
    waiting: set[Peer] = set()
    for _ in range(3000):
        peer = chance.choice([*peers, Peer()]) if peers else Peer()
        peers.setdefault(peer, 0)
        match chance.randrange(4):
            case 0 | 1 if peer not in waiting:
                size = chance.choice((0, 0, 10, 300))
                if kind is Budget or size <= peers[peer] or budget.admits(peer, size - peers[peer]):
                    peers[peer] = size
                    budget.hold(peer, size)
            case 2 if peer not in waiting and budget.is_full and (kind is Budget or not budget.admits(peer, 1)):
                waiting.add(peer)
                budget.wait(peer, lambda peer=peer: waiting.discard(peer))
            case 3:
                budget.forget(peer)
                waiting.discard(peer)
                del peers[peer]
        if chance.random() < 0.2:
            loop.turn()
        assert budget.total == sum(peers.values())
    for peer in peers:
        budget.hold(peer, 0)
    for _ in range(1000):
        loop.turn()
    assert not waiting and budget.total == 0 and budget.holders == 0
