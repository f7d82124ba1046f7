"""Letters arrive whole or not at all, and nobody waits for anybody."""

import asyncio
import shutil
import socket
import struct
import tempfile
import time
from pathlib import Path

import pytest

from ottla.world.mailbox import Box, _address, post


@pytest.fixture(params=["short", "long" * 40])
def path(request):
    made = tempfile.mkdtemp(prefix="ottla-")
    place = Path(made) / request.param  # the longer is too long for an address of a socket
    place.mkdir()
    yield f"{place}/box"
    shutil.rmtree(made)


async def arrived(got, count):
    async with asyncio.timeout(10):
        while len(got) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    return got


def test_letters_arrive(path):
    async def test():
        got = []
        box = await Box.put_up(path, got.append)
        assert box is not None and box.is_there
        letters = [b"", b"x", b"y" * 500_000]
        for number, letter in enumerate(letters):
            assert await asyncio.to_thread(post, path, letter)
            assert await arrived(got, number + 1) == letters[: number + 1]
        box.take_down()
        assert not box.is_there
        assert not post(path, b"too late")

    asyncio.run(test())


def test_half_a_letter_is_none(path):
    async def test():
        got = []
        await Box.put_up(path, got.append)
        for torn in (b"\0", struct.pack(">I", 9) + b"four", struct.pack(">I", 1 << 30) + b"large"):
            with _address(path) as address, socket.socket(socket.AF_UNIX) as line:
                line.connect(address)
                line.sendall(torn)
        assert await asyncio.to_thread(post, path, b"whole")
        assert await arrived(got, 1) == [b"whole"]

    asyncio.run(test())


def test_whoever_comes_later_has_the_place(path):
    async def test():
        first, second = [], []
        old = await Box.put_up(path, first.append)
        new = await Box.put_up(path, second.append)
        assert not old.is_there and new.is_there
        old.take_down()
        assert new.is_there, "another's box stays"
        assert await asyncio.to_thread(post, path, b"for the second")
        assert await arrived(second, 1) == [b"for the second"]
        assert first == []

    asyncio.run(test())


def test_a_place_that_cannot_be(path):
    assert not post(path, b"nobody has a box there")
    assert not post(path, bytes(2 << 20))
    assert asyncio.run(Box.put_up(path + "/no/such/directory", print)) is None


def test_nobody_empties_it(path):
    with socket.socket(socket.AF_UNIX) as box:
        with _address(path) as address:
            box.bind(address)
        box.listen(1)
        began = time.monotonic()
        assert not post(path, bytes(900_000))
        assert time.monotonic() - began < 5
