"""What a controller writes first when it takes over."""

from collections.abc import Iterable

from ottla.controller.features import MIN_ISR
from ottla.controller.view import View
from ottla.metadata.config import DEFAULT_BROKER, ConfigType
from ottla.metadata.error import MetadataError
from ottla.metadata.feature import ELR_VERSION, METADATA_VERSION, TRANSACTIONS_SINCE
from ottla.replicated.decision import Decision
from ottla.wire.message import Message
from ottla.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


def activate(view: View, bootstrap: Iterable[Message], *, transaction_open: bool) -> Decision[None]:
    """Give up a transaction that the last controller left open, and fill an empty log with the `bootstrap` records."""
    records: list[Message] = []
    if transaction_open:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if view.image.features.metadata_version == 0:
        records += _first_records(view, list(bootstrap))
    return Decision(None, tuple(records))


def _first_records(view: View, bootstrap: list[Message]) -> list[Message]:
    levels = {each.name: each.feature_level for each in bootstrap if isinstance(each, FeatureLevelRecord)}
    if METADATA_VERSION not in levels:
        raise MetadataError("the bootstrap records do not say which metadata.version to begin with")
    records = bootstrap
    if levels.get(ELR_VERSION, 0) > 0:
        value = str(view.number(MIN_ISR))
        config = ConfigRecord(
            resource_type=ConfigType.BROKER, resource_name=DEFAULT_BROKER, name=MIN_ISR, value=value
        )
        records = [*bootstrap, config]
    if levels[METADATA_VERSION] < TRANSACTIONS_SINCE:
        return records
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]
