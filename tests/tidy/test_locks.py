"""The lock files hold names, versions and hashes, and no address."""

import re
import tomllib

import pytest

from tests.tidy.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]
# What `make run` installs: the broker, and the services beside it.
RUN = (
    PROJECT["project"]["dependencies"]
    + PROJECT["project"]["optional-dependencies"]["services"]
    + GROUPS["install"]
)
WANTED = {
    "run": RUN,
    "test": RUN + GROUPS["test"],
    "bench": RUN + GROUPS["bench"],
}


def locked(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    return {
        match[1]: match[2]
        for line in text.replace("\\\n", " ").splitlines()
        if (match := re.match(r"([a-z0-9-]+)==(\S+)", line))
    }


@pytest.mark.parametrize("lock", WANTED)
def test_everything_is_pinned_and_hashed(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    entries = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    for entry in entries:
        assert re.fullmatch(
            r"[a-z0-9-]+==[\w.]+(?: ; [^-]+?)?(?:\s+--hash=sha256:[0-9a-f]{64})+", entry.strip()
        ), entry
    names = {re.split(r"[<>=!~\[; ]", each)[0] for each in WANTED[lock]}
    assert names <= locked(lock).keys()


@pytest.mark.parametrize("lock", WANTED)
def test_no_address_is_in_it(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    assert not re.search(r"://|@|index-url|find-links|/", text)


def test_locks_agree() -> None:
    run = locked("run")
    for lock in ("test", "bench"):
        assert run.items() <= locked(lock).items()
