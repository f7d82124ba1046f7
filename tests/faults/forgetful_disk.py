"""A disk in memory that forgets, when the power goes, whatever nobody asked it to keep.

M1  Content is kept from `sync` on, names from `sync_dir` of their directory on, as POSIX promises and no more.
M2  `power_loss` returns the disk that the next start would find. Of what was not synced a random beginning survives:
    writes of a file in their order, the first lost one perhaps torn, or zeros or garbage in its place; names of a
    directory likewise.
M3  After `power_loss` this disk is dead: every call fails, so nothing can be acknowledged that is not on the new one.
M4  `before(what, path)` is called ahead of every operation and may raise, which is how a disk fills up or breaks.

It stands in for `ottla.world.disk.RealDisk`, for one process and its threads.
"""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Callable, Iterator

Bytes = bytes | bytearray | memoryview
Hook = Callable[[str, str], None]
Names = list[str]


class Inode:
    """A file: what a reader sees, what is kept, and the changes between the two."""

    __slots__ = ("changes", "data", "kept", "modified_ms")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.kept = bytearray(data)
        self.changes: list[tuple[int, bytes | None]] = []  # position and bytes, or a new size and None
        self.modified_ms = time.time_ns() // 1_000_000

    def change(self, position: int, data: bytes | None) -> None:
        _apply(self.data, position, data)
        self.changes.append((position, data))
        self.modified_ms = time.time_ns() // 1_000_000

    def keep(self) -> None:
        for position, data in self.changes:
            _apply(self.kept, position, data)
        self.changes.clear()

    def remains(self, chance: random.Random) -> Inode:
        """What of the file is left when the power goes now."""
        left = Inode(bytes(self.kept))
        survivors = chance.randint(0, len(self.changes))
        for position, data in self.changes[:survivors]:
            _apply(left.data, position, data)
        if survivors < len(self.changes):
            position, data = self.changes[survivors]
            if data:
                fate = chance.choice(("lost", "torn", "zeros", "garbage"))
                cut = chance.randint(0, len(data))
                spoiled = {
                    "lost": b"",
                    "torn": data[:cut],
                    "zeros": bytes(cut),
                    "garbage": chance.randbytes(cut),
                }
                _apply(left.data, position, spoiled[fate])
        left.kept = bytearray(left.data)
        left.modified_ms = self.modified_ms
        return left


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
    elif data:
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(data)] = data


class Folder:
    """A directory: names as they are seen, as they are kept, and the changes between the two."""

    __slots__ = ("changes", "kept", "names")

    def __init__(self) -> None:
        self.names: dict[str, Inode | Folder] = {}
        self.kept: dict[str, Inode | Folder] = {}
        self.changes: list[dict[str, Inode | Folder | None]] = []  # each is done wholly or not at all

    def change(self, names: dict[str, Inode | Folder | None]) -> None:
        _rename(self.names, names)
        self.changes.append(names)

    def keep(self) -> None:
        for change in self.changes:
            _rename(self.kept, change)
        self.changes.clear()

    def remains(self, chance: random.Random) -> Folder:
        left = Folder()
        names = dict(self.kept)
        for change in self.changes[: chance.randint(0, len(self.changes))]:
            _rename(names, change)
        left.names = {name: node.remains(chance) for name, node in names.items()}
        left.kept = dict(left.names)
        return left


def _rename(names: dict[str, Inode | Folder], change: dict[str, Inode | Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class ForgetfulFile:
    """A handle by path, which finds its file on first use and after every rest."""

    __slots__ = ("_disk", "_inode", "path", "pins", "size")

    def __init__(self, disk: ForgetfulDisk, path: str, size: int) -> None:
        self._disk = disk
        self._inode: Inode | None = None
        self.path = path
        self.size = size
        self.pins = 0

    def _open(self) -> Inode:
        if self._inode is None:
            self._inode = self._disk.file_at(self.path, create=True)
        return self._inode

    def append(self, data: Bytes) -> None:
        with self._disk.at("append", self.path):
            self._open().change(self.size, bytes(data))
            self.size += len(data)

    def read(self, position: int, size: int) -> bytes:
        with self._disk.at("read", self.path):
            return bytes(self._open().data[position : position + size])

    def write_at(self, position: int, data: Bytes) -> None:
        with self._disk.at("append", self.path):
            self._open().change(position, bytes(data))
            self.size = max(self.size, position + len(data))

    def sync(self) -> None:
        with self._disk.at("sync", self.path):
            self._open().keep()

    def truncate(self, size: int) -> None:
        with self._disk.at("truncate", self.path):
            self._open().change(size, None)
            self.size = size

    def rest(self) -> None:
        if self.pins == 0:
            self.close()

    def close(self) -> None:
        self._inode = None


class HeldNames:
    """A directory that is open, whatever its name becomes."""

    def __init__(self, disk: ForgetfulDisk, path: str, folder: Folder) -> None:
        self._disk, self._path, self._folder = disk, path, folder

    def sync(self) -> None:
        with self._disk.at("sync", self._path):
            self._folder.keep()

    def close(self) -> None:
        pass


class HeldLock:
    """A lock on a path, held until released."""

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        self._locks.discard(self._path)


class _Turn:
    """One operation at a time, each after its hook."""

    __slots__ = ("_disk",)

    def __init__(self, disk: ForgetfulDisk) -> None:
        self._disk = disk

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._disk.mutex.release()


class ForgetfulDisk:
    """Directories and files in memory."""

    def __init__(self, root: Folder | None = None) -> None:
        self.root = root or Folder()
        self.before: Hook | None = None
        self.dead = False
        self.mutex = threading.RLock()
        self._locks: set[str] = set()
        self._turn = _Turn(self)

    # Faults

    def power_loss(self, chance: random.Random) -> ForgetfulDisk:
        """Die, and return what is left."""
        with self.mutex:
            self.dead = True
            return ForgetfulDisk(self.root.remains(chance))

    def copy(self) -> ForgetfulDisk:
        """A disk of its own that holds what a reader of this one sees."""
        with self.mutex:
            return ForgetfulDisk(_copy(self.root))

    def at(self, what: str, path: str) -> _Turn:
        """Take the turn for one operation, unless the disk has died or the hook objects."""
        hook = self.before
        if hook is not None:
            hook(what, path)
        self.mutex.acquire()
        if self.dead:
            self.mutex.release()
            raise OSError(errno.EIO, "the power is gone", path)
        return self._turn

    # Nodes

    def _node(self, path: str) -> Inode | Folder | None:
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
            node = Inode()
            folder.change({name: node})
        return node

    # What a node asks of its disk

    def open(self, path: str, *, create: bool = True, size: int | None = None) -> ForgetfulFile:
        if size is None:
            with self.at("create" if create and not self.exists(path) else "read", path):
                size = len(self.file_at(path, create=create).data)
        return ForgetfulFile(self, path, size)

    def absolute(self, path: str) -> str:
        return path

    def exists(self, path: str) -> bool:
        with self.at("read", path):
            return self._node(path) is not None

    def is_dir(self, path: str) -> bool:
        with self.at("read", path):
            return isinstance(self._node(path), Folder)

    def list(self, path: str) -> Names:
        with self.at("read", path):
            return sorted(self._folder(path).names)

    def list_sizes(self, path: str) -> dict[str, int]:
        with self.at("read", path):
            names = self._folder(path).names.items()
            return {name: len(node.data) for name, node in names if isinstance(node, Inode)}

    def make_dirs(self, path: str) -> None:
        if self.is_dir(path):
            return
        with self.at("create", path):
            folder = self.root
            for part in path.split("/"):
                if not part:
                    continue
                if part not in folder.names:
                    folder.change({part: Folder()})
                following = folder.names[part]
                if not isinstance(following, Folder):
                    raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
                folder = following

    def rename(self, source: str, target: str) -> None:
        with self.at("rename", source):
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
        with self.at("remove", path):
            if isinstance(self._node(path), Inode):
                folder, name = self._home(path)
                folder.change({name: None})

    def remove_tree(self, path: str) -> None:
        with self.at("remove", path):
            if self._node(path) is not None:
                folder, name = self._home(path)
                folder.change({name: None})

    def size(self, path: str) -> int:
        with self.at("read", path):
            return len(self.file_at(path, create=False).data)

    def modified_ms(self, path: str) -> int:
        with self.at("read", path):
            return self.file_at(path, create=False).modified_ms

    def set_modified_ms(self, path: str, ms: int) -> None:
        with self.at("touch", path):
            self.file_at(path, create=False).modified_ms = ms

    def read_bytes(self, path: str) -> bytes:
        with self.at("read", path):
            return bytes(self.file_at(path, create=False).data)

    def write_atomic(self, path: str, data: Bytes) -> None:
        temporary = path + ".tmp"
        file = self.open(temporary)
        file.truncate(0)
        file.append(data)
        file.sync()
        self.rename(temporary, path)
        self.sync_dir(path.rpartition("/")[0])

    def sync_dir(self, path: str) -> None:
        with self.at("sync", path):
            self._folder(path).keep()

    def hold_dir(self, path: str) -> HeldNames:
        return HeldNames(self, path, self._folder(path))

    def limit_open(self, files_max: Callable[[], int]) -> Callable[[], None]:
        return lambda: None

    def sync_filesystem(self, path: str) -> bool:
        with self.at("sync", path):
            for folder in self._folders(self._folder(path)):
                folder.keep()
                for node in folder.names.values():
                    if isinstance(node, Inode):
                        node.keep()
        return True

    def _folders(self, folder: Folder) -> Iterator[Folder]:
        yield folder
        for node in folder.names.values():
            if isinstance(node, Folder):
                yield from self._folders(node)

    def free_bytes(self, path: str) -> int:
        return 1 << 40

    def total_bytes(self, path: str) -> int:
        return 1 << 41

    def lock(self, path: str) -> HeldLock:
        if path in self._locks:
            raise BlockingIOError(f"{path} is locked")
        self._locks.add(path)
        return HeldLock(self._locks, path)

    # What a test asks of it

    def files(self, under: str = "") -> Names:
        """The path of every file, sorted."""
        found: list[str] = []

        def walk(folder: Folder, path: str) -> None:
            for name, node in folder.names.items():
                if isinstance(node, Folder):
                    walk(node, f"{path}/{name}")
                else:
                    found.append(f"{path}/{name}")

        walk(self._folder(under), under.rstrip("/"))
        return sorted(found)

    def put(self, path: str, data: bytes) -> None:
        """Replace a file's content for good, as if it had always been so."""
        folder, name = self._home(path)
        folder.names[name] = folder.kept[name] = Inode(data)


def _copy(folder: Folder) -> Folder:
    twin = Folder()
    for name, node in folder.names.items():
        if isinstance(node, Folder):
            twin.names[name] = _copy(node)
        else:
            inode = Inode(bytes(node.data))
            inode.modified_ms = node.modified_ms
            twin.names[name] = inode
    twin.kept = dict(twin.names)
    return twin
