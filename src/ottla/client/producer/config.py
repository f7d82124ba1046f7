"""The settings of a producer, in the units that its parts work with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ottla.wire.compression import Codec


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """The settings of a producer as typed fields."""

    acks: int
    batch_bytes: int
    linger_s: float
    memory_bytes: int
    block_s: float
    request_bytes_max: int
    request_timeout_ms: int
    in_flight_max: int
    retries: int
    delivery_s: float
    retry_backoff_s: float
    retry_backoff_max_s: float
    codec: Codec
    level: int | None
    is_idempotent: bool
    transactional_id: str | None
    transaction_timeout_ms: int
    is_two_phase: bool
    is_adaptive: bool
    availability_s: float
    ignores_keys: bool

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the configuration from resolved settings."""
        codec = Codec[settings["compression.type"].upper()]
        levels = {
            Codec.GZIP: settings["compression.gzip.level"],
            Codec.LZ4: settings["compression.lz4.level"],
            Codec.ZSTD: settings["compression.zstd.level"],
        }
        return cls(
            acks=settings["acks"],
            batch_bytes=settings["batch.size"],
            linger_s=settings["linger.ms"] / 1000,
            memory_bytes=settings["buffer.memory"],
            block_s=settings["max.block.ms"] / 1000,
            request_bytes_max=settings["max.request.size"],
            request_timeout_ms=settings["request.timeout.ms"],
            in_flight_max=settings["max.in.flight.requests.per.connection"],
            retries=settings["retries"],
            delivery_s=settings["delivery.timeout.ms"] / 1000,
            retry_backoff_s=settings["retry.backoff.ms"] / 1000,
            retry_backoff_max_s=settings["retry.backoff.max.ms"] / 1000,
            codec=codec,
            level=levels.get(codec),
            is_idempotent=settings["enable.idempotence"],
            transactional_id=settings["transactional.id"],
            transaction_timeout_ms=settings["transaction.timeout.ms"],
            is_two_phase=settings["transaction.two.phase.commit.enable"],
            is_adaptive=settings["partitioner.adaptive.partitioning.enable"],
            availability_s=settings["partitioner.availability.timeout.ms"] / 1000,
            ignores_keys=settings["partitioner.ignore.keys"],
        )
