"""A running broker and what anybody may send to it: it stays, and whoever else talks to it hardly notices."""

import json
from pathlib import Path

import pytest

from tests.faults.seeds import count, seeded
from tests.fuzz.campaign import Campaign
from tests.fuzz.live import ANSWER_S_MAX


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(count("OTTLA_FUZZ_REQUESTS", 200_000), id="short", marks=pytest.mark.timeout(1200)),
        pytest.param(
            count("OTTLA_FUZZ_REQUESTS", 5_000_000),
            id="soak",
            marks=[pytest.mark.long, pytest.mark.timeout(0)],
        ),
    ],
)
def test_live_fuzz(tmp_path: Path, requests: int, capsys: pytest.CaptureFixture[str]) -> None:
    seed = seeded(__file__, OTTLA_FUZZ_REQUESTS=requests).randrange(1 << 32)
    with Campaign(tmp_path, seed) as campaign:
        report = campaign.run(requests)
    with capsys.disabled():
        print(f"\nlive fuzz: {json.dumps(report)}")


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(8_000, id="short", marks=pytest.mark.timeout(600)),
        pytest.param(78_000, id="soak", marks=[pytest.mark.long, pytest.mark.timeout(0)]),
    ],
)
def test_every_well_formed_produce_is_answered(
    tmp_path: Path, requests: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of random well-formed Produce requests ten in 78,000 once got no answer within 3 s (ADR 0055)."""
    seed = seeded(__file__, OTTLA_FUZZ_REQUESTS=requests).randrange(1 << 32)
    with Campaign(tmp_path, seed, only=frozenset({0}), well_formed=1.0) as campaign:
        report = campaign.run(requests)
    assert report["slowest_s"] < ANSWER_S_MAX  # type: ignore[operator]
    with capsys.disabled():
        print(f"\nproduce alone: {report['requests']} requests, the slowest answer after {report['slowest_s']} s")
