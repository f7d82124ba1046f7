"""The result as a page to read, and as JSON to compare."""

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]
MIB = 1 << 20

WORDS = """\
Brokers and controllers run on the simulator's virtual clock ([ADR 0043](../adr/0043-a-cluster-in-one-process.md)), on
which a callback of a measured process takes as long as it computes on this machine, and keeps nobody else waiting:
each node has a core of its own. Links take 0.2 to 2 ms, syncs 0.5 to 4 ms. *Virtual seconds* are told by that clock,
*CPU seconds* are those of one process, and *held* is the longest single callback: for so long nothing else was done.

- Three controllers are whole nodes, production code throughout: Raft, its log and snapshots, controller, connections,
  codec. Their disks, links and clocks are the simulator's.
- {whole} of {brokers} brokers are whole nodes too, each with its own image and all its partitions. One of them is lost.
- {others} of {brokers} brokers stand in. Production code is all that speaks to the controllers: the Raft replica that
  follows the metadata log, connections, codec, registration, heartbeats. Their logs forget what was fetched, and they
  share one image, of which each sees what it has fetched and knows to be committed. They have no partitions: nobody
  fetches from them, and a replica whose broker is back is proposed as in sync at once, as leaders do when it is level.

No records are written to the topics. The collector of garbage is off meanwhile; what it costs is told apart. One
process does all of this, so images are weighed, object by object, each counted once; for the loading of the log a fresh
process is started, and there memory is what the kernel counts."""


NOTES = {
    "The same decision, piece by piece": """\
Without the cluster around it: the controller alone, and the same partitions on ever fewer brokers. A decision takes at
most 2,000 partitions from a broker that is gone, and between two of them everybody else is heard
([ADR 0041](../adr/0041-who-is-gone.md)).""",
    "A change costs what it changes": """\
CPU of making a delta and the next image. The first three lines change the same partitions of the same topics, in
clusters of different sizes. The others spread their changes over all topics: a topic of which something changes is
copied, partition by partition, by reference; topics of which nothing changes are shared.""",
}


def write(directory: Path, result: Result) -> None:
    """Leave both in the directory, as scale.md and scale.json."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "scale.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    (directory / "scale.md").write_text(page(result))


def page(result: Result) -> str:
    sizes = result["sizes"]
    facts = ", ".join(f"{name} {fact}" for name, fact in result["machine"].items())
    words = WORDS.format(
        whole=sizes["whole"], brokers=sizes["brokers"], others=sizes["brokers"] - sizes["whole"]
    )
    lines = [
        f"# {sizes['brokers']} brokers, {sizes['partitions']:,} partitions",
        "",
        f"Made by `{result['command']}` on: {facts}.",
        "",
        words,
        "",
    ]
    for title, rows in sections(result):
        lines += [f"## {title}", "", *([NOTES[title], ""] if title in NOTES else []), *_table(rows), ""]
    return "\n".join(lines)


def sections(result: Result) -> list[tuple[str, list[tuple[str, ...]]]]:
    """The tables: each a title, and rows of cells whose first is the head."""
    return [
        ("The cluster is made", _build(result)),
        ("The active controller dies", _failover(result)),
        ("A controller starts again", _restart(result)),
        ("A broker is lost", _loss(result)),
        ("The same decision, piece by piece", _pieces(result)),
        ("A change costs what it changes", _growth(result)),
    ]


def _build(result: Result) -> list[tuple[str, ...]]:
    f, sizes, loaded = result["build"], result["sizes"], result["loaded"]
    partitions = sizes["partitions"]
    return [
        ("figure", "value"),
        (
            "topics × partitions × replicas",
            f"{partitions // sizes['topic_partitions']:,} × {sizes['topic_partitions']} × 3",
        ),
        ("all brokers registered and out of their fence after", f"{f['join_s']:.2f} virtual s"),
        ("topics made, and known to everybody, after", f"{f['made_s']:.1f} virtual s"),
        (
            "CPU of the active controller",
            f"{f['active_cpu_s']:.1f} s, held {f['active_held_ms']:.0f} ms (one request of 5,000 partitions)",
        ),
        ("CPU of a standby controller", f"{f['standby_cpu_s']:.1f} s, held {f['standby_held_ms']:.0f} ms"),
        (
            "CPU of a whole broker, its replicas opened",
            f"{f['broker_cpu_s']:.1f} s, held {f['broker_held_ms']:.0f} ms",
        ),
        ("records written", f"{f['records']:,.0f}"),
        ("metadata log", _each(f["log_bytes"], partitions)),
        ("snapshot", _each(loaded["snapshot"]["file_bytes"], partitions)),
        ("image of the controller that has made it", _each(f["image_bytes"], partitions)),
        ("image of a broker", _each(f["broker_image_bytes"], partitions)),
        ("census of the active controller, beside its image", _each(f["census_bytes"], partitions)),
        (
            "the run itself, everybody in one process",
            f"{result['wall_s']:.0f} s, {result['peak_bytes'] / MIB:.0f} MiB at most",
        ),
    ]


def _failover(result: Result) -> list[tuple[str, ...]]:
    f = result["failover"]
    return [
        ("from the death of the active controller until", "virtual s"),
        (
            "another leads (its connections were closed; after silence alone, 2 s later)",
            f"{f['leads_s']:.2f}",
        ),
        ("the first heartbeat is answered", f"{f['first_heartbeat_s']:.2f}"),
        ("every broker's heartbeat is answered", f"{f['all_heartbeats_s']:.2f}"),
        ("an AlterPartition is answered", f"{f['alter_partition_s']:.2f}"),
        ("CPU of the successor meanwhile", f"{f['cpu_s']:.2f} s, held {f['held_ms']:.0f} ms"),
        ("brokers fenced by mistake", f"{f['fenced']:.0f}"),
    ]


def _restart(result: Result) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            "start on",
            "caught up after",
            "CPU",
            "held",
            "loading in a fresh process: CPU",
            "memory kept",
            "at most",
        )
    ]
    for name, title in (
        ("log", "its log alone, after a kill"),
        ("snapshot", "the snapshot of an orderly stop"),
    ):
        f, loaded = result[f"restart_{name}"], result["loaded"][name]
        rows.append(
            (
                title,
                f"{f['caught_up_s']:.2f} virtual s",
                f"{f['cpu_s']:.2f} s",
                f"{f['held_ms']:.0f} ms",
                f"{loaded['cpu_s']:.2f} s",
                _each(loaded["resident_bytes"], loaded["partitions"]),
                f"{loaded['peak_bytes'] / MIB:.0f} MiB",
            )
        )
    stop = result["restart_snapshot"]["stop_cpu_s"]
    collection = result["loaded"]["snapshot"]["collection_ms"]
    rows.append(("the orderly stop, which writes the snapshot", "", f"{stop:.2f} s", "", "", "", ""))
    rows.append(("a whole collection of garbage on that image", "", f"{collection:.0f} ms", "", "", "", ""))
    return rows


def _loss(result: Result) -> list[tuple[str, ...]]:
    killed, dark = result["loss"], result["loss_power"]
    back = result["back"]

    def row(title: str, name: str, form: str) -> tuple[str, ...]:
        return (title, form.format(killed[name]), form.format(dark[name]))

    return [
        ("from the death of the broker until", "its process is killed", "its machine loses power"),
        row("the first new leaders are known by somebody", "first_leaders_s", "{:.3f} virtual s"),
        row("half of the brokers know all of them", "known_median_s", "{:.3f} virtual s"),
        row("all brokers know all of them", "known_last_s", "{:.3f} virtual s"),
        row("a whole broker has taken its roles", "whole_broker_s", "{:.3f} virtual s"),
        row("replicas it had", "replicas", "{:,.0f}"),
        row("partitions it led", "led", "{:,.0f}"),
        row("records written", "records", "{:,.0f}"),
        row("bytes written", "log_bytes", "{:,.0f}"),
        row("CPU of the active controller, heartbeats and all", "cpu_s", "{:.3f} s"),
        row("its loop held at once", "held_ms", "{:.0f} ms"),
        row("CPU of a whole broker", "apply_cpu_s", "{:.3f} s"),
        row("its loop held at once", "apply_held_ms", "{:.0f} ms"),
        ("**it comes back:** serves after", f"{back['serves_s']:.2f} virtual s", ""),
        ("all its replicas in sync after", f"{back['in_sync_s']:.2f} virtual s", ""),
        ("CPU of its start", f"{back['start_cpu_s']:.2f} s, held {back['start_held_ms']:.0f} ms", ""),
        (
            "CPU of the active controller meanwhile",
            f"{back['cpu_s']:.2f} s, held {back['held_ms']:.0f} ms, {back['records']:,.0f} records",
            "",
        ),
        (
            "leads again what it prefers to lead (ElectLeaders)",
            f"{back['led']:,.0f} partitions in {back['leads_s']:.2f} virtual s, held {back['leads_held_ms']:.0f} ms",
            "",
        ),
    ]


_SPENT = (
    "held_ms",
    "total_ms",
    "decide_ms",
    "check_ms",
    "frame_ms",
    "apply_ms",
    "follow_ms",
    "taking_over_ms",
)


def _pieces(result: Result) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            "brokers",
            "replicas on the lost one",
            "records",
            "decisions",
            "held",
            "in all",
            "deciding",
            "checking",
            "framing",
            "applying",
            "a follower, in all",
            "a new controller's census",
        )
    ]
    for brokers, f in result["pieces"].items():
        spent = [f"{f[name]:.0f} ms" for name in _SPENT]
        counted = [f"{f[name]:,.0f}" for name in ("replicas", "records", "decisions")]
        rows.append((brokers, *counted, *spent))
    return rows


def _growth(result: Result) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("partitions in the cluster", "partitions changed", "delta and image")]
    changed = result["growth"]["changed"]
    rows += [
        (f"{int(size):,}", f"{changed:,}", f"{micros / 1e3:.2f} ms")
        for size, micros in result["growth"]["micros"].items()
    ]
    total = result["sizes"]["partitions"]
    rows += [
        (f"{total:,}", f"{int(count):,}", f"{micros / 1e3:.2f} ms")
        for count, micros in result["apply_cost"].items()
    ]
    one = result["one_topic_micros"]
    rows.append((f"{total:,}, all of one topic", "1", f"{one / 1e3:.2f} ms"))
    return rows


def _each(size_bytes: float, partitions: int) -> str:
    return f"{size_bytes / MIB:.1f} MiB, {size_bytes / partitions:.0f} bytes a partition"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
