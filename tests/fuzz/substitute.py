"""Run a module with other builds of the compiled parts than the tree's own.

    python -m tests.fuzz.substitute DIRECTORY MODULE [ARGUMENT ...]

The directory has one file for each part, named as the part is: `ottla.wire._swift.so`.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


class Substitutes(importlib.abc.MetaPathFinder):
    """Finds the compiled parts in a directory, before anybody else is asked."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Say where a part is; None for all that is no part."""
        file = self._directory / f"{name}.so"
        if not file.exists():
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, str(file))
        return importlib.util.spec_from_file_location(name, file, loader=loader)


def main() -> None:
    directory, module, *arguments = sys.argv[1:]
    sys.meta_path.insert(0, Substitutes(Path(directory)))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
