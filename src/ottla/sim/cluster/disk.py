"""A disk in memory that forgets, when the power goes, whatever nobody asked it to keep.

D4  Content is kept from `sync` on, names from `sync_dir` of their directory on, as POSIX promises and no more.
D5  Of what was not synced a beginning survives: writes of a file in their order, the first lost one perhaps torn, or
    zeros or garbage in its place; names of a directory likewise.
D7  A full disk refuses whatever would make a file longer, and every new name; what is there can be read, cut, renamed
    and removed, and syncing it fails for nothing.
D6  When a process dies its handles die with it: every call fails, so nothing it still does can reach the disk. What it
    had written is there for the next, synced or not: only the power takes that away.
"""

import builtins
import errno
from collections.abc import Callable

from ottla.world.disk import Bytes
from ottla.world.entropy import Entropy

_Change = tuple[int, bytes | None]  # bytes at a position, or a new size


class Inode:
    """A file: what a reader sees, what is kept, and the changes between the two."""

    __slots__ = ("changes", "data", "kept", "modified_ms")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.kept = bytearray(data)
        self.changes: list[_Change] = []
        self.modified_ms = 0

    def change(self, position: int, data: bytes | None) -> None:
        """Write, or cut."""
        _apply(self.data, position, data)
        self.changes.append((position, data))

    def keep(self) -> None:
        """Sync."""
        if self.changes:
            for position, data in self.changes:
                _apply(self.kept, position, data)
            self.changes.clear()

    def remains(self, entropy: Entropy) -> "Inode":
        """What of the file is left when the power goes now (D5)."""
        left = bytearray(self.kept)
        survivors = entropy.below(len(self.changes) + 1)
        for position, data in self.changes[:survivors]:
            _apply(left, position, data)
        if survivors < len(self.changes):
            position, lost = self.changes[survivors]
            if lost:
                cut = entropy.below(len(lost) + 1)
                fate = entropy.below(4)
                garbage = bytes(byte ^ 0x5A for byte in lost[:cut])
                _apply(left, position, (b"", lost[:cut], bytes(cut), garbage)[fate])
        inode = Inode(bytes(left))
        inode.modified_ms = self.modified_ms
        return inode


class Folder:
    """A directory: names as they are seen, as they are kept, and the changes between the two."""

    __slots__ = ("changes", "kept", "names")

    def __init__(self) -> None:
        self.names: dict[str, Inode | Folder] = {}
        self.kept: dict[str, Inode | Folder] = {}
        self.changes: list[dict[str, Inode | Folder | None]] = []  # each is done wholly or not at all

    def change(self, names: "dict[str, Inode | Folder | None]") -> None:
        """Give names, and take them away."""
        _rename(self.names, names)
        self.changes.append(names)

    def keep(self) -> None:
        """Sync."""
        for change in self.changes:
            _rename(self.kept, change)
        self.changes.clear()

    def remains(self, entropy: Entropy) -> "Folder":
        """What of the directory is left when the power goes now (D5)."""
        left = Folder()
        names = dict(self.kept)
        for change in self.changes[: entropy.below(len(self.changes) + 1)]:
            _rename(names, change)
        left.names = {name: names[name].remains(entropy) for name in sorted(names)}
        left.kept = dict(left.names)
        return left


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
    elif data:
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(data)] = data


def _rename(names: dict[str, Inode | Folder], change: dict[str, Inode | Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class SimFile:
    """A handle by path, which finds its file on first use and after every rest."""

    __slots__ = ("_disk", "_inode", "path", "pins", "size")

    def __init__(self, disk: "SimDisk", path: str, size: int) -> None:
        self._disk = disk
        self._inode: Inode | None = None
        self.path = path
        self.size = size
        self.pins = 0

    def _open(self) -> Inode:
        if self._disk.is_dead:
            raise OSError(errno.EIO, "the process is dead", self.path)
        if self._inode is None:
            self._inode = self._disk.file_at(self.path, create=True)
        return self._inode

    def append(self, data: Bytes) -> None:
        """Write `data` at the end."""
        self._write(self.size, bytes(data))
        self.size += len(data)

    def read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`."""
        return bytes(self._open().data[position : position + size])

    def write_at(self, position: int, data: Bytes) -> None:
        """Overwrite bytes in place, growing the file where needed."""
        self._write(position, bytes(data))
        self.size = max(self.size, position + len(data))

    def _write(self, position: int, data: bytes | None) -> None:
        inode = self._open()
        if data is not None:
            self._disk.take_room(position + len(data) - len(inode.data), self.path)
        inode.change(position, data)
        inode.modified_ms = self._disk.now_ms

    def sync(self) -> None:
        """Keep what was written."""
        self._open().keep()

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        self._write(size, None)
        self.size = size

    def rest(self) -> None:
        """Forget where the file is, unless it is in use."""
        if self.pins == 0:
            self._inode = None

    def close(self) -> None:
        """Forget where the file is."""
        self._inode = None


class SimDirectory:
    """A directory that is open, whatever its name becomes."""

    __slots__ = ("_disk", "_folder")

    def __init__(self, disk: "SimDisk", folder: Folder) -> None:
        self._disk = disk
        self._folder = folder

    def sync(self) -> None:
        """Keep its names."""
        if self._disk.is_dead:
            raise OSError(errno.EIO, "the process is dead")
        self._folder.keep()

    def close(self) -> None:
        """Nothing is held."""


class SimLock:
    """A lock of one process; it goes with it."""

    __slots__ = ("_locks", "_path")

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        """Let go."""
        self._locks.discard(self._path)


class SimDisk:
    """The disk of a machine, as one process has it."""

    def __init__(self, root: Folder | None = None) -> None:
        self.root = root or Folder()
        self.is_dead = False
        self.now_ms = 0
        self.room_bytes: int | None = None  # how much more it takes; None is always enough
        self.refused = 0  # how often there was no room
        self.wrote: Callable[[], None] | None = None  # hears of every write: on a slow disk whoever writes waits
        self._locks: set[str] = set()

    # Ends

    def after_death(self) -> "SimDisk":
        """End this process's hold, and return the disk as the next one finds it: all that was written is there."""
        self.is_dead = True
        return self._next(self.root)

    def after_power_loss(self, entropy: Entropy) -> "SimDisk":
        """End this process's hold, and return what the power loss has left."""
        self.is_dead = True
        return self._next(self.root.remains(entropy))

    def _next(self, root: Folder) -> "SimDisk":
        disk = SimDisk(root)
        disk.room_bytes, disk.refused, disk.wrote = self.room_bytes, self.refused, self.wrote
        return disk

    # Room

    def take_room(self, size_bytes: int, path: str) -> None:
        """Let a file grow by so much, or raise OSError (D7)."""
        if self.room_bytes is not None and size_bytes > 0:
            if size_bytes > self.room_bytes:
                self.refused += 1
                raise OSError(errno.ENOSPC, "No space left on device", path)
            self.room_bytes -= size_bytes
        if self.wrote is not None:
            self.wrote()

    # Finding

    def _node(self, path: str) -> Inode | Folder | None:
        if self.is_dead:
            raise OSError(errno.EIO, "the process is dead", path)
        node: Inode | Folder | None = self.root
        for part in path.split("/"):
            if part:
                node = node.names.get(part) if isinstance(node, Folder) else None
        return node

    def _folder(self, path: str) -> Folder:
        node = self._node(path)
        if not isinstance(node, Folder):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return node

    def _home(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        return self._folder(parent), name

    def file_at(self, path: str, *, create: bool) -> Inode:
        """The file at a path."""
        node = self._node(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            folder, name = self._home(path)
            self.take_room(1, path)
            node = Inode()
            folder.change({name: node})
        return node

    # What a node asks of its disk

    def open(self, path: str, *, create: bool = True, size: int | None = None) -> SimFile:
        """Return a handle; a caller that knows the size saves the look-up."""
        if size is None:
            size = len(self.file_at(path, create=create).data)
        return SimFile(self, path, size)

    def absolute(self, path: str) -> str:
        """Return the whole path; there are no others."""
        return path

    def exists(self, path: str) -> bool:
        """Say whether anything is at `path`."""
        return self._node(path) is not None

    def is_dir(self, path: str) -> bool:
        """Say whether a directory is at `path`."""
        return isinstance(self._node(path), Folder)

    def list(self, path: str) -> builtins.list[str]:
        """Return the names in a directory, sorted."""
        return sorted(self._folder(path).names)

    def list_sizes(self, path: str) -> dict[str, int]:
        """Return the plain files of a directory with their sizes."""
        names = self._folder(path).names
        found = {name: names[name] for name in sorted(names)}
        return {name: len(node.data) for name, node in found.items() if isinstance(node, Inode)}

    def make_dirs(self, path: str) -> None:
        """Make a directory and its parents."""
        if self.is_dir(path):
            return
        folder = self.root
        for part in path.split("/"):
            if not part:
                continue
            if part not in folder.names:
                self.take_room(1, path)
                folder.change({part: Folder()})
            following = folder.names[part]
            if not isinstance(following, Folder):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
            folder = following

    def rename(self, source: str, target: str) -> None:
        """Move, replacing what stands at `target`."""
        node = self._node(source)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        old_home, old_name = self._home(source)
        new_home, new_name = self._home(target)
        if old_home is new_home:
            old_home.change({old_name: None, new_name: node})
        else:
            new_home.change({new_name: node})
            old_home.change({old_name: None})

    def remove(self, path: str) -> None:
        """Remove a file; an absent one is fine."""
        if isinstance(self._node(path), Inode):
            folder, name = self._home(path)
            folder.change({name: None})

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all in it; an absent one is fine."""
        if self._node(path) is not None:
            folder, name = self._home(path)
            folder.change({name: None})

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return len(self.file_at(path, create=False).data)

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written."""
        return self.file_at(path, create=False).modified_ms

    def set_modified_ms(self, path: str, ms: int) -> None:
        """Set when a file was last written."""
        self.file_at(path, create=False).modified_ms = ms

    def read_bytes(self, path: str) -> bytes:
        """Return a whole file."""
        return bytes(self.file_at(path, create=False).data)

    def write_atomic(self, path: str, data: Bytes) -> None:
        """Replace a file so that a crash leaves the old content or the new."""
        temporary = path + ".tmp"
        file = self.open(temporary)
        file.truncate(0)
        file.append(data)
        file.sync()
        self.rename(temporary, path)
        self.sync_dir(path.rpartition("/")[0])

    def sync_dir(self, path: str) -> None:
        """Make renames and new names in a directory durable."""
        self._folder(path).keep()

    def hold_dir(self, path: str) -> SimDirectory:
        """Open a directory, for a thread that is to sync its names."""
        return SimDirectory(self, self._folder(path))

    def limit_open(self, files_max: Callable[[], int]) -> Callable[[], None]:
        """Files take no descriptors here."""
        return lambda: None

    def sync_filesystem(self, path: str) -> bool:
        """Make everything durable."""
        folders = [self._folder(path)]
        while folders:
            folder = folders.pop()
            folder.keep()
            for node in folder.names.values():
                if isinstance(node, Inode):
                    node.keep()
                else:
                    folders.append(node)
        return True

    def free_bytes(self, path: str) -> int:
        """Return the room left."""
        return 1 << 40 if self.room_bytes is None else self.room_bytes

    def total_bytes(self, path: str) -> int:
        """Return the size of the disk."""
        return 1 << 41

    def lock(self, path: str) -> SimLock:
        """Take an exclusive lock, or raise BlockingIOError."""
        if path in self._locks:
            raise BlockingIOError(f"{path} is locked")
        self._locks.add(path)
        return SimLock(self._locks, path)
