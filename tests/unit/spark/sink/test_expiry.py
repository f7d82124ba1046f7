"""What was said for the case that a marker is missing, and for which batch."""

from pathlib import Path

import pytest

from ottla.spark.sink.expiry import Plan, _duration


@pytest.mark.parametrize(
    ("said", "choices"),
    [
        ("fail", ("fail", "fail")),
        ("write", ("write", "write")),
        ("write:3", ("write", "fail")),
        ("skip:4", ("fail", "skip")),
    ],
)
def test_what_was_said_for_batches_3_and_4(said: str, choices: tuple[str, str]) -> None:
    plan = Plan(missing_marker=said)
    assert (plan.choice(3), plan.choice(4)) == choices


def test_whether_the_time_is_known(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchTimestampMs":17}\n-')
    assert Plan(None, 17).is_known(3)
    assert Plan("hdfs://name/checkpoint", 17).is_known(3)
    assert Plan(f"file://{tmp_path}").is_known(3)
    assert not Plan(f"file://{tmp_path}").is_known(4)
    assert not Plan("hdfs://name/checkpoint").is_known(3)
    assert not Plan(f"{tmp_path}/elsewhere").is_known(3)
    assert not Plan().is_known(3)


@pytest.mark.parametrize(
    ("ms", "text"), [(60_000, "1 minutes"), (9 * 3_600_000, "9 hours"), (7 * 86_400_000, "7 days")]
)
def test_times_for_people(ms: int, text: str) -> None:
    assert _duration(ms) == text
