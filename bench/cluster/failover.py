"""A leader goes: how long until the next write is acknowledged, when it is killed, stopped, or one of all that are
restarted."""

import statistics
import time

from bench.cluster.stage import ClusterStage, make_topic
from bench.cluster.writers import CLIENTS, Writers, writing
from tests.peers.cluster import Cluster

TOPIC = "failover"


def failover(stage: ClusterStage) -> dict[str, float]:
    """Kill -9 of the leader, again and again, each time once all are in sync."""
    moments = []
    with stage.cluster() as cluster:
        make_topic(cluster, TOPIC)
        with writing(cluster.bootstrap, TOPIC) as writers:
            writers.wait_for_writes(time.monotonic())
            kills = stage.sizes.kills if stage.product == "ottla" else stage.sizes.kafka_kills
            for _ in range(kills):
                leader = cluster.leaders(TOPIC)[0]
                controls = cluster.controller() == leader
                moments.append((time.monotonic(), controls))
                cluster.nodes[leader].kill()
                writers.wait_for_writes(time.monotonic())
                _back(cluster, leader, writers)
    figures = {}
    for client in CLIENTS:
        writer = writers.writers[client]
        waits = sorted(writer.first_after(moment) - moment for moment, _ in moments)
        figures |= {
            f"failover.{client}_p50_s": statistics.median(waits),
            f"failover.{client}_p99_s": waits[min(len(waits) - 1, len(waits) * 99 // 100)],
            f"failover.{client}_max_s": waits[-1],
            f"failover.{client}_errors": len(writer.errors),
        }
    return figures


def _back(cluster: Cluster, id: int, writers: Writers) -> None:
    """Start a node again, and wait until it is in sync and the writers have noticed nothing."""
    cluster.nodes[id].start()
    cluster.wait_whole()
    cluster.wait_in_sync(TOPIC, 3, 120)
    writers.wait_for_writes(time.monotonic())


def rolling(stage: ClusterStage) -> dict[str, float]:
    """Every node in turn: an orderly stop, a start, and on to the next once all are in sync."""
    spans, stops = [], []
    with stage.cluster() as cluster:
        make_topic(cluster, TOPIC)
        with writing(cluster.bootstrap, TOPIC) as writers:
            writers.wait_for_writes(time.monotonic())
            for _ in range(stage.sizes.restarts if stage.product == "ottla" else 1):
                for id, node in cluster.nodes.items():
                    leads = cluster.leaders(TOPIC)[0] == id
                    began = time.monotonic()
                    node.stop()
                    stops.append(time.monotonic() - began)
                    writers.wait_for_writes(time.monotonic())
                    if leads:
                        spans.append((began, time.monotonic()))
                    _back(cluster, id, writers)
            whole = (spans[0][0], time.monotonic())
    figures = {"rolling.stop_s": statistics.median(stops)}
    for client in CLIENTS:
        writer = writers.writers[client]
        figures |= {
            f"rolling.{client}_stop_gap_ms": max(writer.longest_gap(*span) for span in spans) * 1e3,
            f"rolling.{client}_gap_ms": writer.longest_gap(*whole) * 1e3,
            f"rolling.{client}_errors": len(writer.errors),
            f"rolling.{client}_records": len(writer.records),
        }
    return figures
