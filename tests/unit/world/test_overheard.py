"""What a child says is passed on when it has started, and kept when it has not."""

import os
import subprocess
import sys
from pathlib import Path

from ottla.world.overheard import Overheard


def say(overheard: Overheard, program: str) -> "subprocess.Popen[bytes]":
    with overheard.mouth() as descriptor:
        return subprocess.Popen([sys.executable, "-c", program], stderr=descriptor)


def test_nothing_is_passed_on_before_the_child_is_released(tmp_path: Path) -> None:
    into = os.open(tmp_path / "out", os.O_CREAT | os.O_WRONLY)
    overheard = Overheard(lambda line: line.startswith("hm"), into)
    child = say(overheard, "import sys; sys.stderr.write('hm\\none\\nhm two\\nthree')")
    child.wait()
    assert overheard.last_words() == ["one", "three"]
    assert (tmp_path / "out").read_bytes() == b""
    overheard.release()
    assert (tmp_path / "out").read_bytes() == b"one\nthree"
    os.close(into)


def test_once_it_is_released_it_is_heard_at_once(tmp_path: Path) -> None:
    into = os.open(tmp_path / "out", os.O_CREAT | os.O_WRONLY)
    overheard = Overheard(lambda line: False, into)
    overheard.release()
    say(overheard, "import sys; sys.stderr.write('one\\n')").wait()
    assert overheard.last_words() == ["one"]
    assert (tmp_path / "out").read_bytes() == b"one\n"
    os.close(into)


def test_a_child_is_not_held_up_when_nobody_listens() -> None:
    read, write = os.pipe()
    overheard = Overheard(lambda line: False, write)
    overheard.release()
    os.close(read)
    assert say(overheard, "import sys; sys.stderr.write('x' * 99 + '\\n' + 'y\\n' * 100_000)").wait(60) == 0
    assert overheard.last_words()[-1] == "y"
    os.close(write)
