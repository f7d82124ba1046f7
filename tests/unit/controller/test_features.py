"""Finalizing features, and what a controller writes first."""

import pytest

from ottla.controller.controller import Controller
from ottla.metadata.config import ConfigType
from ottla.metadata.error import MetadataError
from ottla.metadata.fold import Fold
from ottla.metadata.settings.layers import BrokerValues
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from ottla.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from ottla.world.entropy import SeededEntropy
from tests.unit.controller.stage import FEATURES, Stage

UPGRADE, SAFE, UNSAFE = 1, 2, 3
OLD = {"metadata.version": 29, "transaction.version": 2, "group.version": 1}


def update(
    stage: Stage, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False
) -> UpdateFeaturesResponse:
    request = UpdateFeaturesRequest(
        feature_updates=[
            UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=validate_only,
    )
    return stage.do(lambda controller, now: controller.update_features(request, version, now))


def test_levels_go_up() -> None:
    stage = Stage(1, features=OLD)
    response = update(stage, ("metadata.version", 30, UPGRADE), ("share.version", 1, UPGRADE))
    assert (response.error_code, response.error_message, response.results) == (ErrorCode.NONE, None, [])
    assert stage.image.features.level("metadata.version") == 30
    assert stage.image.features.level("share.version") == 1


def test_older_requests_hear_of_every_feature() -> None:
    stage = Stage(1, features=OLD)
    response = update(stage, ("metadata.version", 30, UPGRADE), version=1)
    assert [(each.feature, each.error_code, each.error_message) for each in response.results] == [
        ("metadata.version", ErrorCode.NONE, "NONE")
    ]
    assert update(stage, ("metadata.version", 31, UPGRADE), version=1).results == []


def test_the_flag_of_the_oldest_version_allows_nothing() -> None:
    stage = Stage(1, features=OLD)
    wish = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="group.version", max_version_level=0, allow_downgrade=True
    )
    request = UpdateFeaturesRequest(feature_updates=[wish])
    response = stage.do(lambda controller, now: controller.update_features(request, 0, now))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_of_a_feature_named_twice_the_last_level_counts() -> None:
    stage = Stage(1, features=OLD)
    response = update(stage, ("share.version", 9, UPGRADE), ("share.version", 1, UPGRADE), version=1)
    assert (response.error_code, len(response.results)) == (ErrorCode.NONE, 2)
    assert stage.records == [FeatureLevelRecord(name="share.version", feature_level=1)]


def test_validate_only_changes_nothing() -> None:
    stage = Stage(1, features=OLD)
    assert update(stage, ("metadata.version", 30, UPGRADE), validate_only=True).error_code == ErrorCode.NONE
    assert stage.records == []


def test_levels_go_down_where_nothing_is_lost() -> None:
    stage = Stage(1, features=OLD)
    assert (
        update(stage, ("metadata.version", 28, SAFE), ("group.version", 0, SAFE)).error_code == ErrorCode.NONE
    )
    assert stage.image.features.all() == {"metadata.version": 28, "transaction.version": 2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("metadata.version", 29, UPGRADE), "Can't downgrade the version of this feature without setting"),
        (("metadata.version", 29, SAFE), "because it might delete metadata information."),
        (("metadata.version", 29, UNSAFE), "Unsafe metadata downgrade is not supported in this version."),
        (("metadata.version", 31, UPGRADE), "Local controller 1 only supports versions 7-30"),
        (("metadata.version", -1, UPGRADE), "A feature version cannot be less than 0."),
        (("metadata.version", 30, 9), "The controller does not support the given upgrade type."),
        (("transaction.version", 3, UPGRADE), "only supports versions 0-2"),
        (("no.such", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("no.such", 0, SAFE), "Feature no.such not found."),
        (("kraft.version", 0, SAFE), "Can't downgrade the version of this feature."),
        (("group.version", 1, 4), "does not support the given upgrade type"),
    ],
)
def test_levels_that_cannot_be(change: tuple[str, int, int], words: str) -> None:
    stage = Stage(1)
    response = update(stage, change, ("share.version", 0, SAFE))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message is not None
    assert response.error_message.startswith(
        "The update failed for all features since the following feature had"
    )
    assert words in response.error_message
    assert stage.records == []


def test_a_feature_needs_what_it_depends_on() -> None:
    stage = Stage(1, features={"metadata.version": 22})
    response = update(stage, ("eligible.leader.replicas.version", 1, UPGRADE))
    assert response.error_message is not None
    assert "depends on metadata.version level 23" in response.error_message
    assert (
        update(
            stage, ("metadata.version", 23, UPGRADE), ("eligible.leader.replicas.version", 1, UPGRADE)
        ).error_code
        == 0
    )


def test_turning_eligible_leaders_on_fixes_min_isr_for_the_cluster() -> None:
    stage = Stage(1, features={"metadata.version": 30}, settings={"min.insync.replicas": "2"})
    assert update(stage, ("eligible.leader.replicas.version", 1, UPGRADE)).error_code == ErrorCode.NONE
    assert stage.image.configs.of(ConfigType.BROKER, "") == {"min.insync.replicas": "2"}


def test_the_same_kraft_version_is_fine() -> None:
    stage = Stage(1)
    assert update(stage, ("kraft.version", 1, UPGRADE)).error_code == ErrorCode.NONE
    assert stage.records == [NoOpRecord()]
    assert update(stage, ("kraft.version", 1, SAFE)).error_code == ErrorCode.NONE
    assert stage.records == []


def test_kraft_version_is_raised_by_the_quorum_once_nothing_else_stands_in_the_way() -> None:
    asked: list[tuple[int, bool]] = []
    stage = Stage(1)
    view = stage.controller._view
    view.kraft_version, view.raise_kraft_version = 0, lambda level, only: asked.append((level, only))
    refused = update(stage, ("kraft.version", 1, UPGRADE), ("share.version", 9, UPGRADE))
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert asked == [(1, True)] and view.kraft_version == 0
    assert update(stage, ("kraft.version", 1, UPGRADE)).error_code == ErrorCode.NONE
    assert asked[1:] == [(1, True), (1, False)] and view.kraft_version == 1
    assert stage.records == [NoOpRecord()]
    assert update(stage, ("kraft.version", 0, SAFE)).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_quorum_may_refuse_to_raise_kraft_version() -> None:
    stage = Stage(1)
    view = stage.controller._view

    def refuse(level: int, validate_only: bool) -> None:
        raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION, "Not all voters have told.")

    view.kraft_version, view.raise_kraft_version = 0, refuse
    answer = update(stage, ("kraft.version", 1, UPGRADE))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Not all voters have told." in (answer.error_message or "")
    assert stage.records == []


def controller(*records: Message) -> Controller:
    fold = Fold()
    for offset, record in enumerate(records):
        fold.apply(offset, record)
    values = BrokerValues({"node.id": "1", "process.roles": "controller"})
    return Controller(
        fold, node_id=1, cluster_id="c", values=values, entropy=SeededEntropy(1), kraft_version=1, now=0
    )


METADATA_VERSION = FeatureLevelRecord(name="metadata.version", feature_level=30)
ELR = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def test_an_empty_log_gets_the_bootstrap_records_in_a_transaction() -> None:
    records = controller().activate([METADATA_VERSION, ELR], 0).records
    assert records == (
        BeginTransactionRecord(name="Bootstrap records"),
        METADATA_VERSION,
        ELR,
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        EndTransactionRecord(),
    )


def test_an_old_cluster_gets_them_without_a_transaction() -> None:
    old = FeatureLevelRecord(name="metadata.version", feature_level=12)
    assert controller().activate([old], 0).records == (old,)


def test_a_log_that_was_begun_gets_nothing() -> None:
    assert controller(METADATA_VERSION).activate([METADATA_VERSION], 0).records == ()


def test_a_transaction_left_open_is_aborted() -> None:
    records = controller(METADATA_VERSION, BeginTransactionRecord(), ELR).activate([], 0).records
    assert records == (AbortTransactionRecord(reason="Controller failover"),)


def test_a_bootstrap_half_written_is_begun_anew() -> None:
    records = controller(BeginTransactionRecord(), METADATA_VERSION).activate([METADATA_VERSION], 0).records
    assert [type(record) for record in records] == [
        AbortTransactionRecord,
        BeginTransactionRecord,
        FeatureLevelRecord,
        EndTransactionRecord,
    ]


def test_bootstrap_records_must_say_the_metadata_version() -> None:
    with pytest.raises(MetadataError, match=r"metadata\.version"):
        controller().activate([ELR], 0)


def test_the_stage_begins_as_a_new_cluster_does() -> None:
    assert Stage().image.features.all() == FEATURES
