"""Every example of the pages for the command line runs, in the order of the page, and prints what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.command_line import COMMAND, CommandLine
from tests.peers.jars import CHECKOUT

# Each page on a node of its own, and how many examples it has at least.
PAGES = {
    "guide/command-line.md": 16,
    "concepts/topics.md": 1,
    "concepts/log.md": 1,
    "concepts/quorum.md": 1,
    "concepts/delivery.md": 1,
    "concepts/groups.md": 1,
    "concepts/transactions.md": 1,
}
# A block for the shell and, where one follows, the block of what it prints.
EXAMPLE = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
SECONDS_MAX = 60


@pytest.fixture
def ottla(tmp_path: Path) -> CommandLine:
    """`ottla` on the path, and nobody's settings."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ottla").write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    (programs / "ottla").chmod(0o755)
    line = CommandLine("", tmp_path)
    line.environment["PATH"] = f"{programs}:{Path(sys.executable).parent}:{line.environment['PATH']}"
    return line


@pytest.mark.parametrize("page", PAGES)
def test_every_example_runs(ottla: CommandLine, page: str) -> None:
    examples = EXAMPLE.findall((CHECKOUT / "docs" / page).read_text(encoding="utf-8"))
    assert len(examples) >= PAGES[page]
    node = ottla.start("dev", "--port", "0", "--metrics-port", "0", "--no-services", stdin=subprocess.DEVNULL)
    try:
        assert node.stdout is not None
        said = b""
        while b"Ctrl-C" not in said:
            line = node.stdout.readline()
            assert line, said
            said += line
        address = re.search(rb"Kafka clients +(\S+)", said)
        assert address
        ottla.environment["OTTLA_BOOTSTRAP"] = address[1].decode()
        for script, expected in examples:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script.replace("localhost:9092", address[1].decode())],
                cwd=ottla.home,
                env=ottla.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS_MAX,
            )
            assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
            assert not expected or done.stdout == expected, script
    finally:
        node.kill()
        node.communicate()
