"""Who waits for bytes gets them in turn."""

from ottla.client.producer.buffer_pool import BufferPool


def test_bytes_are_taken_and_given() -> None:
    buffer_pool = BufferPool(100)
    assert buffer_pool.allocate(60)
    assert not buffer_pool.allocate(41)
    assert buffer_pool.allocate(40)
    buffer_pool.deallocate(100)
    assert buffer_pool.free == 100


def test_nobody_overtakes() -> None:
    buffer_pool, told = BufferPool(100), list[str]()
    assert buffer_pool.allocate(90)
    large = buffer_pool.enqueue(80, lambda: told.append("large"))
    buffer_pool.enqueue(10, lambda: told.append("small"))
    # There would be room for the small one, and for a newcomer.
    assert not told and not buffer_pool.allocate(5)
    buffer_pool.deallocate(70)
    assert told == ["large"] and large.granted
    buffer_pool.deallocate(20)
    assert told == ["large", "small"]
    assert (buffer_pool.free, buffer_pool.waiting) == (10, 0)


def test_who_leaves_lets_the_next_in() -> None:
    buffer_pool, told = BufferPool(100), list[str]()
    assert buffer_pool.allocate(95)
    first = buffer_pool.enqueue(50, lambda: told.append("first"))
    second = buffer_pool.enqueue(5, lambda: told.append("second"))
    buffer_pool.cancel(first)
    assert told == ["second"]
    # One that was served already gives back.
    buffer_pool.cancel(second)
    assert buffer_pool.free == 5


def test_who_finds_enough_does_not_wait() -> None:
    buffer_pool, told = BufferPool(100), list[str]()
    assert buffer_pool.enqueue(100, lambda: told.append("now")).granted
    assert told == ["now"]
