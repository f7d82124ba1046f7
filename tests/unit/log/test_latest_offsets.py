"""The cleaner's map of keys."""

from hashlib import blake2b

from ottla.log.latest_offsets import ABSENT, ENTRY_BYTES, LatestOffsets


def test_the_last_put_wins():
    latest = LatestOffsets(1 << 20, 0)
    for key in (b"", b"short", b"k" * 15, b"k" * 16, b"k" * 5_000):
        assert latest.get(key) == ABSENT
        latest.put(key, 3)
        latest.put(key, 8)
        assert latest.get(key) == 8
    assert len(latest) == 5


def test_a_key_that_equals_a_digest_is_another_key():
    latest = LatestOffsets(1 << 20, 0)
    long = b"a key that is longer than its digest"
    latest.put(long, 1)
    assert latest.get(blake2b(long, digest_size=16).digest()) == ABSENT


def test_it_is_full_at_the_memory_it_was_given():
    latest = LatestOffsets(ENTRY_BYTES * 10, 0)
    for number in range(10):
        assert not latest.is_full
        latest.put(b"%d" % number, number)
    assert latest.is_full
    latest.put(b"3", 11)
    assert len(latest) == 10


def test_it_takes_one_key_at_least():
    latest = LatestOffsets(0, 0)
    assert not latest.is_full
    latest.put(b"k", 0)
    assert latest.is_full
