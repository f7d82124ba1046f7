"""Brokers and controllers as they registered themselves."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.metadata.directory import is_online
from ottla.wire.records.metadata import RegisterBrokerRecord, RegisterControllerRecord


class Endpoint(NamedTuple):
    """Where a node listens."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class Broker(NamedTuple):
    """A broker's registration. A fenced one leads nothing and is not shown to clients."""

    id: int
    epoch: int
    incarnation_id: bytes
    listeners: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned: tuple[bytes, ...] | None = None

    @classmethod
    def of(cls, record: RegisterBrokerRecord) -> "Broker":
        """The registration a record describes."""
        return cls(
            record.broker_id,
            record.broker_epoch,
            record.incarnation_id,
            {e.name: Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points},
            {f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            record.is_migrating_zk_broker,
            tuple(record.log_dirs),
            None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )

    def record(self) -> RegisterBrokerRecord:
        """The record that makes this registration."""
        return RegisterBrokerRecord(
            broker_id=self.id,
            is_migrating_zk_broker=self.is_migrating_zk_broker,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                RegisterBrokerRecord.BrokerEndpoint(
                    name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for e in self.listeners.values()
            ],
            features=[
                RegisterBrokerRecord.BrokerFeature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=None if self.cordoned is None else list(self.cordoned),
        )

    @property
    def active(self) -> bool:
        """True when the broker may lead partitions."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def has_room(self) -> bool:
        """True unless every directory is cordoned off from new partitions (KIP-1066)."""
        return not self.directories or not self.cordoned or not set(self.directories) <= set(self.cordoned)

    def has_online(self, directory: bytes) -> bool:
        """True when a replica in `directory` can be served."""
        return is_online(directory, self.directories)


class Controller(NamedTuple):
    """A controller's registration."""

    id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    listeners: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, record: RegisterControllerRecord) -> "Controller":
        """The registration a record describes."""
        return cls(
            record.controller_id,
            record.incarnation_id,
            record.zk_migration_ready,
            {e.name: Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points},
            {f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
        )

    def record(self) -> RegisterControllerRecord:
        """The record that makes this registration."""
        return RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[
                RegisterControllerRecord.ControllerEndpoint(
                    name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for e in self.listeners.values()
            ],
            features=[
                RegisterControllerRecord.ControllerFeature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in self.features.items()
            ],
        )
