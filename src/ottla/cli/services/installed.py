"""Whether the packages are there that the services need; asking loads nothing."""

from importlib.util import find_spec

NEEDED = ("granian", "starlette")
INSTALL = "pip install 'ottla[services]'"


def are_installed() -> bool:
    """Say whether the services can run here."""
    return all(find_spec(name) is not None for name in NEEDED)
