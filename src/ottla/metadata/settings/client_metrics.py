"""Settings of a client-metrics subscription (KIP-714)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ottla.metadata.settings.definition import ANY, INT, LIST, MEDIUM, Setting, by_name
from ottla.metadata.settings.error import ConflictingSettings, MistakenRequest
from ottla.metadata.settings.pieces import pieces
from ottla.metadata.settings.rule import ListOf

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENT_METRICS_SETTINGS: tuple[Setting, ...] = (
    Setting("interval.ms", INT, 300_000, MEDIUM, ANY,
            "How often a client pushes its metrics, from 100 ms to an hour."),
    Setting("match", LIST, (), MEDIUM, ListOf(),
            "Which clients are meant: name=pattern, separated by commas; all when empty."),
    Setting("metrics", LIST, (), MEDIUM, ListOf(),
            "Prefixes of the metrics to push; * for all."),
)

CLIENT_METRICS: dict[str, Setting] = by_name(CLIENT_METRICS_SETTINGS)

_MATCHABLE = {
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
}


def validate_client_metrics(overrides: Mapping[str, str]) -> None:
    """Raise SettingError unless `overrides` may be set on a client-metrics subscription."""
    for name in overrides:
        if name not in CLIENT_METRICS:
            raise MistakenRequest(f"Unknown client metrics configuration: {name}", name=name)
    values = {name: CLIENT_METRICS[name].parse(text) for name, text in overrides.items()}
    interval_ms = values.get("interval.ms")
    if isinstance(interval_ms, int) and not 100 <= interval_ms <= 3_600_000:
        raise MistakenRequest(
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
            name="interval.ms",
        )
    patterns = values.get("match")
    for pattern in patterns if isinstance(patterns, tuple) else ():
        parts = pieces(pattern, "=")
        if len(parts) != 2 or parts[0].strip() not in _MATCHABLE or not _compiles(parts[1].strip()):
            raise ConflictingSettings(f"Illegal client matching pattern: {pattern}", name="match")


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
