"""Who waits for bytes gets them in turn."""

from ottla.client.producer.memory import Memory


def test_bytes_are_taken_and_given() -> None:
    memory = Memory(100)
    assert memory.take(60)
    assert not memory.take(41)
    assert memory.take(40)
    memory.give(100)
    assert memory.free == 100


def test_nobody_overtakes() -> None:
    memory, told = Memory(100), list[str]()
    assert memory.take(90)
    large = memory.queue(80, lambda: told.append("large"))
    memory.queue(10, lambda: told.append("small"))
    # There would be room for the small one, and for a newcomer.
    assert not told and not memory.take(5)
    memory.give(70)
    assert told == ["large"] and large.granted
    memory.give(20)
    assert told == ["large", "small"]
    assert (memory.free, memory.waiting) == (10, 0)


def test_who_leaves_lets_the_next_in() -> None:
    memory, told = Memory(100), list[str]()
    assert memory.take(95)
    first = memory.queue(50, lambda: told.append("first"))
    second = memory.queue(5, lambda: told.append("second"))
    memory.leave(first)
    assert told == ["second"]
    # One that was served already gives back.
    memory.leave(second)
    assert memory.free == 5


def test_who_finds_enough_does_not_wait() -> None:
    memory, told = Memory(100), list[str]()
    assert memory.queue(100, lambda: told.append("now")).granted
    assert told == ["now"]
