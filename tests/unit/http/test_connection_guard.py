from ottla.http.connection_guard import ConnectionGuard


class One:
    def __init__(self, number, received=0, taken=1):
        self.number, self.bytes_received, self.bytes_taken = number, received, taken
        self.is_open = True

    def hang_up(self):
        self.is_open = False


class Port:
    def __init__(self, *connections):
        self.connections = list(connections)

    def look(self):
        return [each for each in self.connections if each.is_open]


def test_who_says_nothing_is_hung_up_on_and_nobody_else():
    silent, half, whole, answered = (
        One(1),
        One(2, received=23),
        One(3, received=24),
        One(4, received=18, taken=300),
    )
    guard = ConnectionGuard(Port(silent, half, whole, answered), connections_max=10, silence_s=5)
    guard.check(100.0)
    guard.check(104.9)
    assert silent.is_open and half.is_open
    guard.check(105.0)
    assert [each.is_open for each in (silent, half, whole, answered)] == [False, False, True, True]


def test_the_newest_go_when_there_are_too_many():
    old = [One(number, received=100) for number in range(3)]
    port = Port(*old)
    guard = ConnectionGuard(port, connections_max=3, silence_s=5)
    guard.check(1.0)
    port.connections[:0] = [One(7, received=100), One(8)]  # in whatever order they are found
    guard.check(2.0)
    assert all(each.is_open for each in old)
    assert not port.connections[0].is_open and not port.connections[1].is_open
    old[0].is_open = False
    port.connections.append(late := One(9, received=50))
    guard.check(3.0)
    assert late.is_open and guard.open == 3


def test_all_of_them_at_the_end():
    port = Port(One(1), One(2, received=100))
    ConnectionGuard(port, connections_max=3, silence_s=5).hang_up_on_all()
    assert not port.look()
