"""The fuzz target of the decoders, for a few seconds and from a fixed seed."""

import random

from tests.fuzz.fuzz_wire import MESSAGES, one_input
from tests.unit.wire.samples import Sampler


def test_random_bytes() -> None:
    chance = random.Random(20)
    for _ in range(4000):
        one_input(chance.randbytes(chance.randrange(3, 60)))


def test_damaged_messages() -> None:
    chance = random.Random(21)
    for number, cls in enumerate(MESSAGES):
        index = chance.randrange(len(cls.versions))
        data = Sampler(number).message(cls, cls.versions[index]).encode(cls.versions[index])[:3000]
        for _ in range(8):
            damaged = bytearray(data)
            for _ in range(chance.randrange(3) if damaged else 0):
                damaged[chance.randrange(len(damaged))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
            cut = len(damaged) if chance.random() < 0.7 else chance.randrange(len(damaged) + 1)
            one_input(number.to_bytes(2) + bytes([index]) + damaged[:cut])
