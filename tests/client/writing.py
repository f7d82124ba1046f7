"""Writes records with a client that is not ours."""

from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Producer


def write(
    bootstrap: str,
    topic: str,
    values: Iterable[bytes | dict[str, Any] | None],
    partition: int = 0,
    **settings: Any,
) -> None:
    """Write values, or whole records as keywords of `Producer.produce`, to a partition, in order."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            # Or a batch that is tried again may come behind the next.
            "enable.idempotence": True,
            **{k.replace("_", "."): v for k, v in settings.items()},
        }
    )
    for value in values:
        record = value if isinstance(value, dict) else {"value": value}
        while True:
            try:
                producer.produce(topic, partition=partition, **record)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(30) == 0


def write_transaction(
    bootstrap: str, topic: str, values: Sequence[bytes], *, commit: bool, name: str, partition: int = 0
) -> None:
    """Write values in a transaction, and end it."""
    producer = open_transaction(bootstrap, topic, values, name=name, partition=partition)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def open_transaction(
    bootstrap: str, topic: str, values: Sequence[bytes], *, name: str, partition: int = 0
) -> Producer:
    """Write values in a transaction, and leave it open."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    producer.flush(30)
    return producer
