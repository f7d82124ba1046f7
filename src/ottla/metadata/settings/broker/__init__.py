"""Every broker setting, by subject; which may change at run time, and for whom."""

import functools
import re

from ottla.metadata.settings.broker.groups import GROUPS_SETTINGS
from ottla.metadata.settings.broker.internal import DYNAMIC_SETTINGS, INTERNAL_SETTINGS, OPEN_PREFIXES
from ottla.metadata.settings.broker.log import LOG_SETTINGS
from ottla.metadata.settings.broker.metrics import METRICS_SETTINGS
from ottla.metadata.settings.broker.network import NETWORK_SETTINGS
from ottla.metadata.settings.broker.node import NODE_SETTINGS
from ottla.metadata.settings.broker.oauth import OAUTH_SETTINGS
from ottla.metadata.settings.broker.own import OWN_SETTINGS
from ottla.metadata.settings.broker.quorum import QUORUM_SETTINGS
from ottla.metadata.settings.broker.remote import REMOTE_SETTINGS
from ottla.metadata.settings.broker.replication import REPLICATION_SETTINGS
from ottla.metadata.settings.broker.security import SECURITY_SETTINGS
from ottla.metadata.settings.broker.share import SHARE_SETTINGS
from ottla.metadata.settings.broker.transactions import TRANSACTIONS_SETTINGS
from ottla.metadata.settings.definition import Setting, Update, by_name

# (title, settings), in the order in which the reference shows them.
BROKER_SUBJECTS: tuple[tuple[str, tuple[Setting, ...]], ...] = (
    ("Ottla's own", OWN_SETTINGS),
    ("Node and defaults", NODE_SETTINGS),
    ("Network", NETWORK_SETTINGS),
    ("Quorum", QUORUM_SETTINGS),
    ("Log", LOG_SETTINGS),
    ("Replication and quotas", REPLICATION_SETTINGS),
    ("Groups", GROUPS_SETTINGS),
    ("Share groups", SHARE_SETTINGS),
    ("Transactions", TRANSACTIONS_SETTINGS),
    ("Security", SECURITY_SETTINGS),
    ("OAuth", OAUTH_SETTINGS),
    ("Tiered storage", REMOTE_SETTINGS),
    ("Metrics", METRICS_SETTINGS),
    ("Internal", INTERNAL_SETTINGS),
)

BROKER: dict[str, Setting] = by_name(*(settings for _, settings in BROKER_SUBJECTS))

DYNAMIC_ONLY: dict[str, Setting] = by_name(DYNAMIC_SETTINGS)

DYNAMIC: dict[str, Setting] = DYNAMIC_ONLY | {
    name: setting for name, setting in BROKER.items() if setting.update is not Update.READ_ONLY
}

# TLS stores may change at run time under a listener's prefix only.
LISTENER_ONLY: frozenset[str] = frozenset(
    name for name in DYNAMIC if re.fullmatch(r"ssl\.(key|trust)store\.(?!.*algorithm).*|ssl\.key\.password", name)
)

# Settings that say the same thing in other units; the earlier one wins.
UNIT_SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)

_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISM_SETTINGS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def broker_setting(name: str) -> Setting | None:
    """The definition behind a name, also behind one with a listener's prefix; None when nobody knows it."""
    return BROKER.get(name) or DYNAMIC_ONLY.get(name) or BROKER.get(listener_setting(name) or "")


def listener_setting(name: str) -> str | None:
    """The setting that a `listener.name.<listener>.` name overrides, or None for any other name."""
    match = _LISTENER.fullmatch(name)
    if not match:
        return None
    return next((known for known in _MECHANISM_SETTINGS if match[1].endswith(known)), match[1])


@functools.lru_cache(1024)  # for names that clients make up, too
def broker_synonyms(name: str) -> tuple[str, ...]:
    """The names under which a broker setting's value may stand, the strongest first."""
    if name == "log.flush.interval.ms":
        return (name, "log.flush.scheduler.interval.ms")
    for group in UNIT_SYNONYMS:
        if name in group:
            return group
    overridden = listener_setting(name)
    return (name, overridden) if overridden else (name,)


__all__ = [
    "BROKER", "BROKER_SUBJECTS", "DYNAMIC", "DYNAMIC_ONLY", "LISTENER_ONLY", "OPEN_PREFIXES", "UNIT_SYNONYMS",
    "broker_setting", "broker_synonyms", "listener_setting",
]
