"""The process as the system sees it: memory, processor, descriptors, threads, disk."""

import resource
from collections.abc import Iterator

from ottla.http.metrics.text import Family, counter, gauge
from ottla.world.disk import Disk


def process(disk: Disk, start_ms: int) -> Iterator[Family]:
    """Everything Prometheus' own clients tell of a process, and the disk traffic as Kafka names it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds_total", "Processor time used, user and system.").add(
        usage.ru_utime + usage.ru_stime
    )
    yield gauge("process_start_time_seconds", "When the process started, since the epoch.").add(
        start_ms / 1000
    )
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield gauge("process_max_fds", "How many descriptors the process may hold.").add(soft)
    yield gauge("process_open_fds", "How many descriptors the process holds.").add(
        len(_names(disk, "/proc/self/fd"))
    )
    status = _pairs(disk, "/proc/self/status")
    if "VmRSS" in status:
        yield gauge("process_resident_memory_bytes", "Memory in use.").add(_bytes(status["VmRSS"]))
        yield gauge("process_virtual_memory_bytes", "Memory mapped.").add(_bytes(status["VmSize"]))
        yield gauge("process_threads", "Threads of the process.").add(int(status["Threads"]))
    traffic = _pairs(disk, "/proc/self/io")
    if "read_bytes" in traffic:
        help = "Bytes that the process caused to be {} a device."
        read = gauge("kafka_server_kafkaserver_linux_disk_read_bytes", help.format("read from"))
        yield read.add(int(traffic["read_bytes"]))
        written = gauge("kafka_server_kafkaserver_linux_disk_write_bytes", help.format("written to"))
        yield written.add(int(traffic["write_bytes"]))


def loop_cpu_seconds() -> float:
    """Processor time of the thread that asks: the loop's, when the loop asks."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_utime + usage.ru_stime


def _names(disk: Disk, path: str) -> list[str]:
    try:
        return disk.list(path)
    except OSError:  # not every system has /proc, and some hide parts of it
        return []


def _pairs(disk: Disk, path: str) -> dict[str, str]:
    try:
        text = disk.read_bytes(path).decode()
    except OSError:
        return {}
    return {
        name: value.strip()
        for name, colon, value in (line.partition(":") for line in text.splitlines())
        if colon
    }


def _bytes(kilobytes: str) -> int:
    return int(kilobytes.removesuffix("kB")) * 1024
