"""What a measurement found."""

from collections.abc import Mapping
from typing import Any

from ottla.cli.amount import duration_text
from ottla.cli.output.printer import Facts, Listing, View, show
from ottla.cli.output.table import Column
from ottla.cli.perf.latencies import Latencies
from ottla.cli.perf.speed import Speed, rates_text


def report(form: str, speed: Speed, latencies: Mapping[str, Latencies] | None = None) -> None:
    """Print throughput, and latencies by what they are of; nothing when nothing was measured."""
    if not speed.records:
        return
    counts = speed.summary()
    found: dict[str, dict[str, Any]] = {name: each.summary() for name, each in (latencies or {}).items()}
    facts = {
        "records": f"{counts['records']:,} in {duration_text(counts['seconds'])}",
        "throughput": rates_text(counts["records_per_second"], counts["bytes_per_second"]),
    }
    views: list[View] = [Facts(facts)]
    if found:
        rows = [{"what": name, **summary} for name, summary in found.items()]
        columns = [Column(name, name.removesuffix("_ms")) for name in rows[0] if name != "what"]
        views.append(Listing(rows, [Column("what", "ms"), *columns]))
    show(form, {**counts, **found}, *views)
