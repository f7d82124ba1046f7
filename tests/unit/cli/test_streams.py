"""Standard streams: what is read and written off the loop, and pipes that break."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from ottla.cli.stream import Elsewhere, Outlet, read_chunks
from ottla.world.shell import cut_off, is_file, settings_home, variable


async def gather(path: str) -> bytes:
    return b"".join([chunk async for chunk in read_chunks(path)])


def test_files_are_read_whole(tmp_path: Path) -> None:
    data = os.urandom(1_000_000)
    (tmp_path / "file").write_bytes(data)
    assert asyncio.run(gather(str(tmp_path / "file"))) == data
    with pytest.raises(FileNotFoundError):
        asyncio.run(gather(str(tmp_path / "nowhere")))


def test_the_loop_goes_on_while_nobody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as stdin, os.fdopen(theirs, "wb", buffering=0) as keyboard:
        monkeypatch.setattr(sys, "stdin", stdin)

        async def main() -> list[bytes]:
            chunks = read_chunks()
            waiting = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0.01)
            assert not waiting.done()
            keyboard.write(b"typed")
            first = await waiting
            keyboard.close()
            return [first, *[chunk async for chunk in chunks]]

        assert asyncio.run(main()) == [b"typed"]


def test_an_error_elsewhere_comes_back() -> None:
    async def main() -> None:
        thread = Elsewhere("test")
        assert await thread.call(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await thread.call(lambda: 1 // 0)
        assert thread.is_idle
        thread.close()

    asyncio.run(main())


def test_what_is_written_comes_out_whole_and_a_broken_pipe_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = os.pipe()
    data = os.urandom(500_000)
    with os.fdopen(ours, "rb") as reader, os.fdopen(theirs, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)

        async def main() -> None:
            with Outlet() as outlet:
                writing = asyncio.ensure_future(outlet.write(data))
                read = await asyncio.to_thread(reader.read, len(data))
                await writing
                assert read == data
                outlet.check()
                assert outlet.is_idle
                reader.close()
                with pytest.raises(BrokenPipeError):
                    outlet.check()
                with pytest.raises(BrokenPipeError):
                    await outlet.write(b"x")

        asyncio.run(main())


def test_an_interrupt_does_not_wait_for_a_full_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as reader, os.fdopen(theirs, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)

        async def main() -> None:
            with Outlet() as outlet:
                writing = asyncio.ensure_future(outlet.write(bytes(1_000_000)))
                await asyncio.sleep(0.05)
                writing.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await writing
                assert not outlet.is_idle
                # The thread is let go, so that the test can end.
                await asyncio.to_thread(reader.read, 1_000_000)

        asyncio.run(main())


def test_what_the_shell_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OTTLA_TEST", "")
    assert variable("OTTLA_TEST") is None
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings_home() == str(tmp_path / ".config")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert settings_home() == "/elsewhere"
    with (tmp_path / "file").open("w") as file:
        assert is_file(file)
        cut_off(file)
        file.write("into nothing")
    assert (tmp_path / "file").read_text() == ""
    ours, theirs = os.pipe()
    with os.fdopen(ours), os.fdopen(theirs, "w") as pipe:
        assert not is_file(pipe)
