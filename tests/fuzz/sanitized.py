"""The compiled parts under the address and undefined-behaviour sanitizers, with `compiled_targets` as their input.

    python -m tests.fuzz.sanitized [--inputs N] [--seed N] [--target NAME]

The parts are built with the sanitizers in a directory of their own, kept by what their sources are, and `substitute`
has them loaded; the tree's own are left alone. Python's allocator is turned off, so that each object is a piece of
memory of its own, and CPython itself, which leaks at its end on purpose, is not asked for leaks.
"""

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLAGS = (
    *(
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
    ),
    *("-fPIC", "-shared"),
)


def compiler() -> list[str]:
    """The C compiler that Python was built with."""
    return shlex.split(sysconfig.get_config_var("CC") or "cc")


def library(name: str) -> str | None:
    """Where the compiler has a library of its own; None if it has not."""
    try:
        told = subprocess.run(
            [*compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    path = told.stdout.strip()
    return path if os.path.isabs(path) and os.path.exists(path) else None


def missing() -> str | None:
    """Why nothing can be run here; None if it can."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} has no use for the compiled parts"
    if shutil.which(compiler()[0]) is None:
        return "there is no C compiler"
    if library("libasan.so") is None or library("libubsan.so") is None:
        return "the C compiler has no libasan and libubsan"
    return None


def build(directory: Path, sources: Path = ROOT / "src") -> None:
    """Make the sanitized parts there."""
    directory.mkdir(parents=True, exist_ok=True)
    made = {}
    for source in sorted(sources.glob("ottla/*/*.c")):
        part = ".".join(source.relative_to(sources).with_suffix("").parts)
        command = [
            *compiler(),
            *FLAGS,
            "-I",
            sysconfig.get_path("include"),
            str(source),
            "-o",
            str(directory / f"{part}.so"),
        ]
        made[source.name] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for name, process in made.items():
        _, said = process.communicate()
        assert process.returncode == 0, f"{name}: {said}"


def built() -> Path:
    """Return where the sanitized parts are, as they are in the tree; made if they are not there yet."""
    digest = hashlib.sha256(" ".join((*FLAGS, sys.version)).encode())
    for source in sorted((ROOT / "src").glob("ottla/*/*.[ch]")):
        digest.update(source.read_bytes())
    directory = ROOT / ".cache" / f"sanitized-{digest.hexdigest()[:16]}"
    if not directory.exists():
        for old in directory.parent.glob("sanitized-*"):
            shutil.rmtree(old, ignore_errors=True)
        new = directory.with_name(f"{directory.name}-{os.getpid()}")
        build(new)
        new.rename(directory)
    return directory


def run(directory: Path, inputs: int, seed: int, target: str | None = None) -> tuple[int, str]:
    """Give so many inputs to the parts in a directory; return how it ended, and what it said."""
    environment = os.environ | {
        "LD_PRELOAD": " ".join(filter(None, (library("libasan.so"), library("libubsan.so")))),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, "-m", "tests.fuzz.substitute", str(directory), "tests.fuzz.compiled_targets"]
    command += [str(inputs), str(seed)]
    command += [] if target is None else [target]
    ended = subprocess.run(
        command,
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return ended.returncode, ended.stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--target")
    arguments = parser.parse_args()
    why_not = missing()
    if why_not is not None:
        raise SystemExit(f"error: {why_not}")
    print(f"seed {arguments.seed}", flush=True)
    code, said = run(built(), arguments.inputs, arguments.seed, arguments.target)
    print(said)
    sys.exit(code)


if __name__ == "__main__":
    main()
