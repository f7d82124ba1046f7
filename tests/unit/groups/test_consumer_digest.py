"""The hash by which a change of topics is noticed, against Kafka's own numbers."""

import pytest

from ottla.groups.consumer.digest import Digests, topic_digest
from ottla.groups.consumer.xxh3 import xxh3
from ottla.groups.topics import TopicFacts
from ottla.wire.uuid import uuid_bytes
from tests.unit.groups.consumer_stage import Topics

# By size: every way the hash goes, and its borders. Computed with hash4j 0.22, which Kafka uses.
VECTORS = {
    0: 0x2D06800538D394C2,
    1: 0xC44BDFF4074EECDB,
    2: 0x9093381C8763D62E,
    3: 0xC3489259E968AD9E,
    4: 0xD3D60C1519014E89,
    5: 0x559935C0F3F7327F,
    8: 0xB88DEE77F6BF6980,
    9: 0x03688DCAD730D826,
    12: 0x305C5BAE3681D0E0,
    16: 0x9DA23836ADF2BE1E,
    17: 0xF34C3C9CF5A112D1,
    24: 0x25DA37B787C3B790,
    32: 0x99CB9AD0F1A11FBE,
    33: 0xC077B45492D29CDE,
    64: 0x6EFB76FF16F37561,
    65: 0x2640848E9137156B,
    96: 0x764D2D5DB92942DF,
    97: 0x077ACB7E5F4FD940,
    128: 0x65F3C2C00FA93185,
    129: 0x28065C6EC25F5B25,
    160: 0xCC592DA68FEA2254,
    200: 0x7C64F3B17285E96A,
    240: 0x4917A75C0EF8EED7,
    241: 0x541B19226F0052E8,
    255: 0x99B37C2C806E33D3,
    256: 0xFF5A1CEFADE75BB9,
    320: 0x35E81FC050847C13,
    512: 0xF6FE51471F2FA1EC,
    1023: 0x2CC3EB48D98F537F,
    1024: 0xDC5ACF0B043C445B,
    1025: 0xE1D9CD946277AE26,
    1088: 0x4A9C221912B93194,
    2048: 0x848D24CC268F7498,
    5000: 0x6ABE8BE5ABCB2760,
}


@pytest.mark.parametrize("size", VECTORS)
def test_xxh3(size):
    assert xxh3(bytes(index * 7 & 0xFF for index in range(size))) == VECTORS[size]


def test_the_numbers_of_a_topic_and_a_group_are_kafkas():
    topics = Topics()
    topic_id = uuid_bytes("AQIDBAUGBwgJCgsMDQ4PEA")
    facts = TopicFacts("fo\u00f6", topic_id, 2, (frozenset({"r2", "r1"}), frozenset({"r2"})))
    assert topic_digest(facts) == 5968156092491145119
    topics.find = lambda name: facts
    assert Digests(topics).of(["fo\u00f6"]) == 8788094619631599705


def test_a_group_without_topics_has_no_hash():
    assert Digests(Topics(foo=1)).of([]) == 0
    assert Digests(Topics(foo=1)).of(["absent"]) == 0


def test_the_order_of_names_does_not_matter_but_their_topics_do():
    topics = Topics(foo=1, bar=1)
    digests = Digests(topics)
    both = digests.of(["foo", "bar"])
    assert both == digests.of(["bar", "foo"]) != digests.of(["foo"])
    topics.put("bar", 2)
    assert digests.of(["foo", "bar"]) != both
    assert -(2**63) <= both < 2**63


def test_racks_count():
    plain = TopicFacts("foo", bytes(16), 1)
    assert topic_digest(plain) != topic_digest(plain._replace(racks=(frozenset({"a"}),)))
