"""Updating finalized features: up freely, down only where nothing can be lost.

U1  All updates of a request stand or fall together.
U2  A level is only finalized when every registered broker and controller supports it.
U3  kraft.version is the quorum's own, and raised by it: last, once nothing else stands in the way.
"""

import enum
from collections.abc import Mapping

from ottla.controller.view import View
from ottla.metadata.config import DEFAULT_BROKER, ConfigType
from ottla.metadata.feature import (
    ELR_VERSION,
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    metadata_changed_between,
    missing_requirement,
)
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from ottla.wire.records.metadata import ConfigRecord, FeatureLevelRecord, NoOpRecord

MIN_ISR = "min.insync.replicas"
UPDATES_MAX = 1_000  # in one request, which are decided at once
_RESULTS_UNTIL = 1  # the last version that answers for every feature


class Direction(enum.IntEnum):
    """Which way a level may move."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    view: View, request: UpdateFeaturesRequest, version: int
) -> Decision[UpdateFeaturesResponse]:
    """Finalize new levels."""
    if len(request.feature_updates) > UPDATES_MAX:
        message = f"A request may update at most {UPDATES_MAX} features."
        return Decision(UpdateFeaturesResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message))
    updates = {update.feature: update.max_version_level for update in request.feature_updates}
    # As in Kafka the flag of v0 has no effect: its requests only ever upgrade.
    directions = {update.feature: _direction(update.upgrade_type) for update in request.feature_updates}
    proposed = view.image.features.all() | updates
    records: list[Message] = []
    try:
        for name, level in updates.items():
            records += _update(view, name, level, directions[name], proposed)
        if updates.get(KRAFT_VERSION, 0) > view.kraft_version and not request.validate_only:
            _raise_kraft(view, updates[KRAFT_VERSION], validate_only=False)
            view.kraft_version = updates[KRAFT_VERSION]
    except BrokerError as error:
        message = (
            f"The update failed for all features since the following feature had an error: {error.message}"
        )
        return Decision(UpdateFeaturesResponse(error_code=error.code, error_message=message))
    if updates.get(ELR_VERSION, 0) > 0:
        records = [*_elr_safety(view), *records]
    response = UpdateFeaturesResponse(error_message=None)
    if version <= _RESULTS_UNTIL:
        response.results = [
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature, error_message=ErrorCode.NONE.name
            )
            for update in request.feature_updates
        ]
    return Decision(response, () if request.validate_only else tuple(records))


def _direction(code: int) -> Direction:
    try:
        return Direction(code)
    except ValueError:
        return Direction.UNKNOWN


def _update(
    view: View, name: str, level: int, direction: Direction, proposed: Mapping[str, int]
) -> list[Message]:
    if direction is Direction.UNKNOWN:
        raise _refused(name, level, "The controller does not support the given upgrade type.")
    current = view.kraft_version if name == KRAFT_VERSION else view.image.features.level(name)
    if level < 0:
        raise _refused(name, level, "A feature version cannot be less than 0.")
    reason = _unsupported(view, name, level)
    if reason is not None:
        raise _refused(name, level, reason)
    if level < current and direction is Direction.UPGRADE:
        raise _refused(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > current and direction is not Direction.UPGRADE:
        raise _refused(name, level, "Can't downgrade to a newer version.")
    if name == KRAFT_VERSION:
        return _update_kraft(view, level, current, direction)
    if name == METADATA_VERSION:
        _check_metadata_version(current, level, direction)
    elif name not in FEATURES:
        # Level zero of what nobody knows is supported by everybody, and still cannot be finalized.
        raise _refused(name, level, f"Feature {name} not found.")
    else:
        missing = missing_requirement(name, level, proposed)
        if missing is not None:
            raise _refused(name, level, missing)
    return [FeatureLevelRecord(name=name, feature_level=level)]


def _update_kraft(view: View, level: int, current: int, direction: Direction) -> list[Message]:
    if level < current:
        raise _refused(KRAFT_VERSION, level, "Can't downgrade the version of this feature.")
    if level > current:
        _raise_kraft(view, level, validate_only=True)
    # There is nothing to record, but the answer to an upgrade shall still wait for the log.
    return [NoOpRecord()] if direction is Direction.UPGRADE else []


def _raise_kraft(view: View, level: int, *, validate_only: bool) -> None:
    if view.raise_kraft_version is None:
        raise _refused(KRAFT_VERSION, level, "The voters of this quorum stand in its settings for good.")
    try:
        view.raise_kraft_version(level, validate_only)
    except BrokerError as error:
        raise _refused(KRAFT_VERSION, level, error.message or error.code.name) from None


def _check_metadata_version(current: int, level: int, direction: Direction) -> None:
    if level >= current or not metadata_changed_between(level, current):
        return
    reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    if direction is Direction.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    message = f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"
    raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION, message)


def _unsupported(view: View, name: str, level: int) -> str | None:
    nodes = [(f"Local controller {view.node_id}", SUPPORTED)]
    nodes += [(f"Broker {each.id}", each.features) for each in view.image.brokers.values()]
    nodes += [
        (f"Controller {each.id}", each.features)
        for each in view.image.controllers.values()
        if each.id != view.node_id
    ]
    for node, supported in nodes:
        low, high = supported.get(name, (0, 0))
        if not low <= level <= high:
            if high == 0:
                return f"{node} does not support this feature."
            known = str(low) if low == high else f"{low}-{high}"
            return f"{node} only supports versions {known}"
    return None


def _elr_safety(view: View) -> list[Message]:
    # With eligible leader replicas, min.insync.replicas must not differ between brokers.
    records: list[Message] = []
    configs = view.image.configs
    if MIN_ISR not in configs.of(ConfigType.BROKER, DEFAULT_BROKER):
        value = str(view.number(MIN_ISR))
        records.append(
            ConfigRecord(
                resource_type=ConfigType.BROKER, resource_name=DEFAULT_BROKER, name=MIN_ISR, value=value
            )
        )
    own = [
        name
        for name in configs.names(ConfigType.BROKER)
        if name and MIN_ISR in configs.of(ConfigType.BROKER, name)
    ]
    removed = [
        ConfigRecord(resource_type=ConfigType.BROKER, resource_name=name, name=MIN_ISR, value=None)
        for name in own
    ]
    return [*records, *removed]


def _refused(name: str, level: int, reason: str) -> BrokerError:
    message = f"Invalid update version {level} for feature {name}. {reason}"
    return BrokerError(ErrorCode.INVALID_UPDATE_VERSION, message)
