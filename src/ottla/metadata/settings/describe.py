"""Settings as DescribeConfigs shows them: value, source, type, and the chain of synonyms behind the value.

The chain lists every layer that has a value under any of the setting's names, the strongest first, and begins at the
first entry that carries the setting's own name. So a retention given in hours alone shows no synonym, as in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.metadata.settings.broker import BROKER, broker_setting, broker_synonyms
from ottla.metadata.settings.client_metrics import CLIENT_METRICS
from ottla.metadata.settings.definition import Setting, Update, Value
from ottla.metadata.settings.group import GROUP, GROUP_SYNONYMS, effective_group
from ottla.metadata.settings.layers import BrokerValues, Source
from ottla.metadata.settings.topic import SYNONYMS, TOPIC, effective_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True, slots=True)
class Synonym:
    """One link of the chain behind a value."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Description:
    """One entry of a DescribeConfigs answer. `type` is Kafka's number, 0 when the setting is unknown."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: int
    doc: str | None


def describe_topic(
    values: BrokerValues, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[Description]:
    """Every setting of a topic that sets `overrides`, or those asked for by name."""
    effective = effective_topic(values, overrides)
    asked = frozenset(names or ())
    found = []
    for setting in TOPIC.values():
        own = setting.name in overrides
        if not _wanted(setting.name, asked) or (setting.hidden and not own):
            continue
        value = setting.parse(overrides[setting.name]) if own else effective[setting.name]
        first = SYNONYMS[setting.name][0].name if setting.name in SYNONYMS else None
        chain = _chain(values, first, setting.sensitive) if first else ()
        found.append(_entry(setting, value, Source.TOPIC_CONFIG if own else None, chain))
    return found


def describe_group(
    values: BrokerValues, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[Description]:
    """Every setting of a group that sets `overrides`, or those asked for by name."""
    effective = effective_group(values, overrides)
    asked = frozenset(names or ())
    found = []
    for setting in GROUP.values():
        own = setting.name in overrides
        if not _wanted(setting.name, asked) or (setting.hidden and not own):
            continue
        synonym = GROUP_SYNONYMS.get(setting.name)
        if synonym:
            chain = _chain(values, synonym, setting.sensitive)
        else:
            chain = (Synonym(setting.name, setting.text(setting.default_value), Source.DEFAULT_CONFIG),)
        source = Source.GROUP_CONFIG if own else None
        found.append(_entry(setting, effective[setting.name], source, chain))
    return found


def describe_client_metrics(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[Description]:
    """Every setting of a client-metrics subscription, or those asked for by name."""
    asked = frozenset(names or ())
    found = []
    for setting in CLIENT_METRICS.values():
        if _wanted(setting.name, asked):
            own = setting.name in overrides
            value = setting.parse(overrides[setting.name]) if own else setting.default_value
            found.append(_entry(setting, value, Source.CLIENT_METRICS_CONFIG if own else None, ()))
    return found


def describe_broker(values: BrokerValues, names: Collection[str] | None = None) -> list[Description]:
    """Every setting of this broker; hidden, listener-prefixed and unknown ones where somebody set them."""
    given = [name for name in (*values.static, *values.dynamic_default, *values.dynamic_broker) if _extra(name)]
    shown = [name for name, setting in BROKER.items() if not setting.hidden]
    asked = frozenset(names or ())
    return [
        _broker_entry(values, name, default_only=False)
        for name in dict.fromkeys(given + shown)
        if _wanted(name, asked)
    ]


def describe_broker_default(values: BrokerValues, names: Collection[str] | None = None) -> list[Description]:
    """The settings that are set for the whole cluster, and nothing else."""
    asked = frozenset(names or ())
    return [
        _broker_entry(values, name, default_only=True)
        for name in values.dynamic_default
        if _wanted(name, asked)
    ]


def _broker_entry(values: BrokerValues, name: str, *, default_only: bool) -> Description:
    setting = broker_setting(name)
    # What we cannot tell the type of might be a secret.
    sensitive = setting is None or setting.sensitive
    chain = _chain(values, name, sensitive)
    value = chain[0].value if chain else None
    if default_only:
        chain = tuple(link for link in chain if link.source is Source.DYNAMIC_DEFAULT_BROKER_CONFIG)
        value = None if sensitive else values.dynamic_default[name]
    elif setting is not None and not sensitive:
        value = setting.text(values[name]) if name in values else setting.text(setting.default_value)
    return Description(
        name=name,
        value=value,
        source=chain[0].source if chain else Source.DEFAULT_CONFIG,
        read_only=setting is None or setting.update is Update.READ_ONLY or name not in BROKER,
        sensitive=sensitive,
        synonyms=chain,
        type=setting.type if setting is not None else 0,
        doc=setting.doc if setting is not None else None,
    )


def _entry(setting: Setting, value: Value, own: Source | None, chain: tuple[Synonym, ...]) -> Description:
    text = None if setting.sensitive else setting.text(value)
    if own is not None:
        chain = (Synonym(setting.name, text, own), *chain)
    return Description(
        name=setting.name,
        value=text,
        source=chain[0].source if chain else Source.DEFAULT_CONFIG,
        read_only=False,
        sensitive=setting.sensitive,
        synonyms=chain,
        type=setting.type,
        doc=setting.doc,
    )


def _chain(values: BrokerValues, name: str, sensitive: bool) -> tuple[Synonym, ...]:
    links = [
        Synonym(synonym, None if sensitive else texts[synonym], source)
        for source, texts in values.layers
        for synonym in broker_synonyms(name)
        if synonym in texts
    ]
    start = next((at for at, link in enumerate(links) if link.name == name), len(links))
    return tuple(links[start:])


def _wanted(name: str, asked: frozenset[str]) -> bool:
    return not asked or name in asked


def _extra(name: str) -> bool:
    setting = BROKER.get(name)
    return setting is None or setting.hidden
