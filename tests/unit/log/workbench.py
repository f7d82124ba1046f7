"""What the tests of the log share: a directory that can be opened again, batches, and a disk that can fail."""

import errno

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.wire.batch import build_batch, read_records, scan
from ottla.wire.control import end_transaction_batch
from ottla.wire.record import Record
from ottla.world.disk import RealDisk
from ottla.world.entropy import SeededEntropy

NOW = 1_800_000_000_000
TOPIC_ID = bytes(range(16))


class Workbench:
    """One log directory with one log of interest, `t-0`, that can be stopped and started at will."""

    def __init__(self, path, disk=None, **settings):
        self.path = str(path)
        self.disk = disk or RealDisk()
        self.config = LogConfig(**settings)
        self.warnings = []
        self.offline = []
        self._open()
        self.log = self.directory.open_log("t", 0, TOPIC_ID, self.config)
        if self.log.is_nascent:
            self.log.make()

    def _open(self):
        self.directory = LogDirectory(
            self.path, self.disk, SeededEntropy(1), self.warnings.append, lambda _, e: self.offline.append(e)
        )
        self.directory.open()

    def stop(self, *, clean=True):
        """Stop as SIGTERM does, or as kill -9 does."""
        self.directory.close(clean=clean, broker_epoch=7)

    def restart(self, *, clean=True):
        """Stop, start again, and return the log as the new start finds it."""
        self.stop(clean=clean)
        return self.start()

    def start(self):
        self._open()
        self.directory.load(lambda topic: self.config)
        self.log = self.directory.logs["t", 0]
        return self.log

    @property
    def log_path(self):
        return f"{self.path}/t-0"


def batch(*values, timestamp=NOW, keys=None, **how):
    """Build a client's batch of these values."""
    records = [
        Record(
            i, timestamp + i, keys[i] if keys else None, value if isinstance(value, bytes) else b"%d" % value
        )
        for i, value in enumerate(values)
    ]
    return build_batch(records, **how)


def put(log, *values, epoch=0, now_ms=NOW, **how):
    """Append one client batch."""
    return log.append(batch(*values, **how), epoch, now_ms)


def put_from(log, producer_id, sequence, *values, producer_epoch=0, **how):
    """Append one batch of an idempotent producer."""
    return put(
        log, *values, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=sequence, **how
    )


def end_transaction(log, producer_id, *, commit, producer_epoch=0, coordinator_epoch=0, **how):
    """Append the marker that ends a producer's transaction."""
    marker = end_transaction_batch(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=NOW,
    )
    return log.append(marker, 0, NOW, from_client=False, **how)


def read_all(log, size_bytes_max=1 << 30):
    """Return offset and value of every data record, reading as a consumer does."""
    found = []
    offset = log.start_offset
    while data := log.read(offset, size_bytes_max, log.end_offset):
        for position, header in scan(data):
            if not header.is_control:
                records = read_records(data, position)
                found += [(record.offset, record.value) for record in records if record.offset >= offset]
            last = header.end_offset
        offset = last
    return found


class FaultyFile:
    """A file whose next append, sync or read may fail."""

    def __init__(self, inner, disk):
        self._inner = inner
        self._disk = disk

    def __getattr__(self, name):
        return getattr(self._inner, name)

    @property
    def size(self):
        return self._inner.size

    @property
    def path(self):
        return self._inner.path

    @path.setter
    def path(self, path):
        self._inner.path = path

    @property
    def pins(self):
        return self._inner.pins

    @pins.setter
    def pins(self, pins):
        self._inner.pins = pins

    def append(self, data):
        self._disk.check("append", self.path)
        self._inner.append(data)

    def sync(self):
        self._disk.check("sync", self.path)
        self._inner.sync()


class FaultyDisk(RealDisk):
    """A disk that refuses what `fail` names, until `heal`."""

    def __init__(self):
        super().__init__()
        self.faults = {}
        self.calls = []

    def fail(self, operation, ending="", code=errno.EIO):
        self.faults[operation, ending] = code

    def heal(self):
        self.faults.clear()

    def check(self, operation, path):
        self.calls.append((operation, path))
        for (failing, ending), code in self.faults.items():
            if failing == operation and path.endswith(ending):
                raise OSError(code, errno.errorcode[code])

    def list_sizes(self, path):
        self.check("list", path)
        return super().list_sizes(path)

    def open(self, path, *, create=True, size=None):
        self.check("open", path)
        return FaultyFile(super().open(path, create=create, size=size), self)
