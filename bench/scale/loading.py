"""A process that loads a metadata log and does nothing else: what time and memory that takes.

python -m bench.scale.loading DIRECTORY

The directory holds `__cluster_metadata-0`. The figures go to standard output as JSON.
"""

import gc
import json
import re
import sys
import time
from pathlib import Path

from bench.scale.weight import weigh
from ottla.quorum.metadata_log import fold_batches, load
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.world.clock import RealClock
from ottla.world.disk import RealDisk


def resident_bytes(field: str = "VmRSS") -> int:
    """What the kernel counts for this process; VmHWM is the most that it ever was."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main(directory: str) -> None:
    gc.collect()
    before, began = resident_bytes(), time.process_time()
    loaded = load(
        Surroundings(RealDisk(), RealClock()), QuorumSettings(1, directory, bytes(16)), lambda error: None
    )
    fold_batches(loaded.log, loaded.fold, loaded.log.end_offset)
    loaded.fold.settle()
    seconds = time.process_time() - began
    peak = resident_bytes("VmHWM")
    image = loaded.fold.image
    partitions = sum(len(topic.partitions) for topic in image.topics.by_id.values())
    gc.collect()
    after = resident_bytes()
    began = time.process_time()
    gc.collect()
    collection = time.process_time() - began
    figures = {
        "cpu_s": seconds,
        "partitions": partitions,
        "resident_bytes": after - before,
        "peak_bytes": peak - before,
        "image_bytes": weigh(image),
        "collection_ms": collection * 1e3,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1])
