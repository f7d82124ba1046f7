"""On which connection each broker speaks to the controller, and whose close is news."""

from ottla.broker.contacts import Contacts


class Line:
    """A connection, as far as contacts know one."""

    def __init__(self):
        self.on_close = []

    def close(self):
        waiting, self.on_close = self.on_close, []
        for call in waiting:
            call()


def make():
    closed = []
    contacts = Contacts(lambda decide, reply: None)
    contacts.on_closed = closed.append
    return contacts, closed


def test_only_the_last_connection_of_a_broker_counts():
    contacts, closed = make()
    first, second = Line(), Line()
    contacts.heard(1, 10, first)
    contacts.heard(2, 20, first)
    contacts.heard(1, 10, second)
    first.close()
    assert closed == [2]
    second.close()
    assert closed == [2, 1]


def test_whoever_speaks_on_two_connections_in_turn_costs_no_more_for_it():
    contacts, closed = make()
    lines = [Line(), Line()]
    for number in range(1_000):
        contacts.heard(1, 10, lines[number % 2])
    assert [len(line.on_close) for line in lines] == [1, 1]
    for line in lines:
        line.close()
    assert closed == [1]
    assert not contacts._connections and not contacts._watched
