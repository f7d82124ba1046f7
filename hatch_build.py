"""Builds the compiled parts of Ottla, where there is a C compiler; without one it is installed all the same.

Each is a module that has a twin in Python. It is built beside its source, for the Python that installs.
"""

import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = "src/ottla/*/*.c"


class CompiledParts(BuildHookInterface[Any]):
    """Called by hatchling for a wheel and for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say so if that is not possible."""
        for source in sorted(Path(self.root).glob(SOURCES)):
            target = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX") or ".so")
            target.unlink(missing_ok=True)
            failure = compile_part(source, target)
            if failure is not None:
                self.app.display_warning(f"{source.name} was not compiled, Python does its work: {failure}")
                continue
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"].append(f"/{target.relative_to(self.root)}")


def compile_part(source: Path, target: Path) -> str | None:
    """Make a module of a source; return why not if that failed."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} has no use for it"
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    made = target.with_suffix(".new")
    command = [
        *compiler,
        "-O2",
        "-fPIC",
        "-shared",
        "-I",
        sysconfig.get_path("include"),
        str(source),
        "-o",
        str(made),
    ]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"no compiler: {error}"
    if run.returncode:
        made.unlink(missing_ok=True)
        return (run.stderr.strip() or "the compiler failed").splitlines()[0]
    made.rename(target)
    return None
