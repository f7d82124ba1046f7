"""The settings of an admin client."""

from dataclasses import replace

from ottla.client.settings.connection import CONNECTION_SETTINGS, changed
from ottla.client.settings.security import SECURITY_SETTINGS
from ottla.metadata.settings.definition import HIGH, INT, INT_MAX, LIST, LOW, MEDIUM, Setting, by_name
from ottla.metadata.settings.rule import ListOf, at_least, between

ADMIN_SETTINGS: tuple[Setting, ...] = (
    Setting("bootstrap.controllers", LIST, (), HIGH, ListOf(),
            "Addresses of some controllers, host:port, to speak to them in place of brokers."),
    Setting("default.api.timeout.ms", INT, 60_000, MEDIUM, at_least(0),
            "How long a call without a timeout of its own may take."),
    Setting("retries", INT, INT_MAX, LOW, between(0, INT_MAX),
            "How often a request that failed for the moment is sent again, within default.api.timeout.ms."),
    *(
        replace(setting, valid=ListOf()) if setting.name == "bootstrap.servers" else setting
        for setting in changed(
            CONNECTION_SETTINGS,
            bootstrap_servers=(),
            connections_max_idle_ms=300_000,
            enable_metrics_push=False,
        )
    ),
    *SECURITY_SETTINGS,
)

ADMIN: dict[str, Setting] = by_name(ADMIN_SETTINGS)
