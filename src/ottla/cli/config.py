"""`ottla config`: settings of topics, brokers, groups and client metrics."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.cli.connection import output_form
from ottla.cli.error import MISUSED, OK, CommandError
from ottla.cli.output.printer import show_rows
from ottla.cli.running import run_admin
from ottla.cli.syntax.config import RESOURCE
from ottla.client import Admin
from ottla.client.admin.configs import Append, ConfigEntry, Resource, ResourceKind, Subtract
from ottla.client.errors import Refused
from ottla.wire.errors import ErrorCode

_KINDS = {
    "topic": ResourceKind.TOPIC,
    "broker": ResourceKind.BROKER,
    "broker-logger": ResourceKind.BROKER_LOGGER,
    "client-metrics": ResourceKind.CLIENT_METRICS,
    "group": ResourceKind.GROUP,
}
_WORDS = {kind: word for word, kind in _KINDS.items()}
DEFAULT = "default"


def resource_of(text: str) -> Resource:
    """Read `topic/NAME` and its like."""
    word, slash, name = text.partition("/")
    kind = _KINDS.get(word)
    if kind is None or not slash or not name:
        raise CommandError(f"{text} is nothing that has settings", RESOURCE, exit_code=MISUSED)
    if kind is ResourceKind.BROKER and name == DEFAULT:
        return Resource.broker()
    if kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and not (name.isascii() and name.isdigit()):
        hint = "broker/1 is one of them, broker/default all that have no value of their own"
        raise CommandError(f"a broker has a number, and {name} is none", hint, exit_code=MISUSED)
    return Resource(kind, name)


def resource_text(resource: Resource) -> str:
    """Return a resource as it is written on the command line."""
    return f"{_WORDS.get(resource.kind, 'unknown')}/{resource.name or DEFAULT}"


def list_resources(options: argparse.Namespace) -> int:
    """Print everything that has, or may have, settings."""

    async def command(admin: Admin) -> int:
        found = await admin.configs.resources()
        rows = [
            {
                "resource": resource_text(each),
                "type": _WORDS.get(each.kind, "unknown"),
                "name": each.name or DEFAULT,
            }
            for each in found
        ]
        show_rows(output_form(options), rows, ("resource",), "nothing has settings")
        return OK

    return run_admin(options, command)


def describe_config(options: argparse.Namespace) -> int:
    """Print settings: those that somebody set, those that were named, or all."""
    resource = resource_of(options.resource)

    async def command(admin: Admin) -> int:
        with _hinting(resource):
            found = await admin.configs.describe(
                resource, names=options.keys or None, synonyms=options.all, documentation=options.docs
            )
        unknown = [key for key in options.keys if key not in found[resource]]
        if unknown:
            raise CommandError(f"{resource_text(resource)} has no setting {unknown[0]}", exit_code=MISUSED)
        shown = [
            each
            for each in sorted(found[resource].values(), key=lambda entry: entry.name)
            if options.all or options.keys or not each.is_default
        ]
        rows = [_row(each, docs=options.docs) for each in shown]
        columns = ["setting", "value", "source", "read_only", *(["meaning"] if options.docs else [])]
        show_rows(output_form(options), rows, columns, "every setting has its default; --all shows them")
        return OK

    return run_admin(options, command)


@contextmanager
def _hinting(resource: Resource) -> Iterator[None]:
    """Say with a command where the brokers are listed; the client says it with a call."""
    try:
        yield
    except Refused as error:
        is_broker = resource.kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER)
        if is_broker and error.code is ErrorCode.INVALID_REQUEST and "no such broker" in error.args[0]:
            error.hint = "ottla cluster info lists the brokers"
        raise


def _row(entry: ConfigEntry, *, docs: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "setting": entry.name,
        "value": "(hidden)" if entry.is_sensitive else entry.value,
        "source": entry.source.name.lower().replace("_config", "").replace("_", "-"),
        "type": entry.type.name.lower() if entry.type is not None else None,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }
    return row | ({"meaning": entry.documentation} if docs else {})


def set_config(options: argparse.Namespace) -> int:
    """Change settings."""
    return _alter(options, dict(_change(text) for text in options.pairs))


def unset_config(options: argparse.Namespace) -> int:
    """Let settings go back to their defaults."""
    return _alter(options, dict.fromkeys(options.keys))


def _alter(options: argparse.Namespace, changes: dict[str, object]) -> int:
    resource = resource_of(options.resource)

    async def command(admin: Admin) -> int:
        with _hinting(resource):
            await admin.configs.alter({resource: changes}, validate_only=options.dry_run)
        return OK

    return run_admin(options, command)


def _change(text: str) -> tuple[str, object]:
    """Read `key=value`, `key+=value` or `key-=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip("+- "):
        raise CommandError(f"{text} is not key=value, key+=value or key-=value", exit_code=MISUSED)
    if name.endswith("+"):
        return name[:-1].strip(), Append(value.strip())
    if name.endswith("-"):
        return name[:-1].strip(), Subtract(value.strip())
    return name.strip(), value.strip()
