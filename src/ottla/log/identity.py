"""Whose directory it is: `meta.properties`, and whose partition it is: `partition.metadata`."""

from typing import NamedTuple

from ottla.log import names
from ottla.wire.errors import ProtocolError
from ottla.wire.uuid import ZERO_UUID, uuid_bytes, uuid_text
from ottla.world.disk import Disk, File

META_PROPERTIES = "meta.properties"


class IdentityError(Exception):
    """A `meta.properties` that does not say whose directory it is."""


class Identity(NamedTuple):
    """The node and cluster a log directory belongs to, and its own id."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def read_identity(disk: Disk, directory: str) -> Identity | None:
    """Return whose directory it is, or None when it was never formatted."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        text = disk.read_bytes(path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise IdentityError(f"{path} is not text") from None
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", "!")):
            # Java escapes '=' and ':' in values; neither occurs in these, but a colon does in a comment's date.
            values[name.strip()] = value.strip().replace("\\", "")
    if values.get("version") != "1":
        raise IdentityError(f"{path} has version {values.get('version', '0')}, expected 1")
    try:
        return Identity(
            values["cluster.id"],
            int(values["node.id"]),
            uuid_bytes(values.get("directory.id", uuid_text(ZERO_UUID))),
        )
    except (KeyError, ValueError, ProtocolError) as error:
        raise IdentityError(f"{path} lacks a sound cluster.id, node.id or directory.id: {error}") from None


def write_identity(disk: Disk, directory: str, identity: Identity) -> None:
    """Say whose directory it is."""
    lines = [
        "#",
        f"cluster.id={identity.cluster_id}",
        f"directory.id={uuid_text(identity.directory_id)}",
        f"node.id={identity.node_id}",
        "version=1",
        "",
    ]
    disk.write_atomic(f"{directory}/{META_PROPERTIES}", "\n".join(lines).encode())


def read_topic_id(disk: Disk, directory: str) -> bytes | None:
    """Return the topic id a partition was created for, or None when the file is absent or makes no sense."""
    try:
        text = disk.read_bytes(f"{directory}/{names.PARTITION_METADATA}").decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "topic_id":
            try:
                topic_id = uuid_bytes(value.strip())
            except ProtocolError:
                return None
            return topic_id if topic_id != ZERO_UUID else None
    return None


def write_topic_id(disk: Disk, directory: str, topic_id: bytes) -> str:
    """Say which topic a partition is of; the file is synced with the first records, and its path returned for that."""
    path = f"{directory}/{names.PARTITION_METADATA}"
    file: File = disk.open(path, size=0)
    try:
        file.truncate(0)
        file.append(f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode())
    finally:
        file.close()
    return path
