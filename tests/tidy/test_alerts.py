"""The alert rules of the documents ask for metrics that there are, and each of them is explained."""

import re

from tests.tidy.tree import ROOT

PAGE = (ROOT / "docs" / "operations" / "monitoring.md").read_text(encoding="utf-8")
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
RULE = re.compile(r"^      - alert: (\w+)\n        expr: (.+)\n(?:        for: \d+[mh]\n)?", re.MULTILINE)
NAME = re.compile(r"\b(?:kafka|ottla|process)_[a-z0-9_]+")


def test_alerts_ask_for_metrics_that_there_are() -> None:
    rules = RULE.findall(PAGE)
    assert len(rules) > 10
    assert len(rules) == PAGE.count("- alert:")
    known = set(re.findall(r"^\| `(\w+)` \| (?:counter|gauge) ", METRICS, re.MULTILINE))
    for name in re.findall(r"^\| `(\w+)` \| histogram ", METRICS, re.MULTILINE):
        known |= {name + part for part in ("_bucket", "_sum", "_count")}
    for alert, expression in rules:
        assert set(NAME.findall(expression)) <= known, alert


def test_every_alert_is_explained() -> None:
    explained = re.findall(r"^\| (Ottla\w+) \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert explained == [alert for alert, _ in RULE.findall(PAGE)]
