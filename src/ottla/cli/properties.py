"""Settings as the command line takes them: from a properties file, and as `--override key=value`."""

from ottla.cli.error import MISUSED, CommandError
from ottla.node.properties import PropertiesError, parse_properties
from ottla.world.disk import RealDisk


def read_properties(path: str) -> dict[str, str]:
    """The pairs of a properties file; CommandError when it is none."""
    try:
        return parse_properties(RealDisk().read_bytes(path))
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}", "ottla dev needs no file", exit_code=MISUSED) from None
    except PropertiesError as error:
        raise CommandError(f"{path}: {error}", exit_code=MISUSED) from None


def overrides(pairs: list[str]) -> dict[str, str]:
    """The pairs behind `--override key=value`."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise CommandError(
                f"--override {pair} is not key=value", "--override num.partitions=3", exit_code=MISUSED
            )
        found[name.strip()] = value.strip()
    return found
