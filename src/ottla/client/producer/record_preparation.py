"""Prepares records before they are encoded: calls interceptors, then serializers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from ottla.client.duration import Time
from ottla.client.errors import ClientError, SerializationFailed
from ottla.client.producer.delivery import Delivery, DeliveryCallback
from ottla.client.producer.interceptor import Outgoing, ProducerInterceptors
from ottla.client.record import RecordMetadata
from ottla.client.serializer import SerializerCall

PreparedRecord = tuple[str, Any, Any, int | None, Time | None, Any]


class RecordPreparation:
    """Prepares the records of one producer, and reports their outcomes to interceptors and callbacks."""

    def __init__(
        self,
        key: SerializerCall | None,
        value: SerializerCall | None,
        interceptors: ProducerInterceptors | None,
        on_delivery: DeliveryCallback | None,
    ) -> None:
        self._key = key
        self._value = value
        self._interceptors = interceptors
        self._callbacks: list[Callable[[RecordMetadata, ClientError | None], object]] = []
        if interceptors is not None:
            self._callbacks.append(interceptors.acknowledge)
        if on_delivery is not None:
            self._callbacks.append(on_delivery)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self | None:
        """Return the preparation for these settings, or None if there is nothing to do."""
        interceptors = settings["interceptor.classes"]
        made = cls(
            settings["key.serializer"],
            settings["value.serializer"],
            ProducerInterceptors(interceptors) if interceptors else None,
            settings["on.delivery"],
        )
        return made if made._key or made._value or made._callbacks else None

    def prepare(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: Time | None,
        headers: Any,
    ) -> PreparedRecord:
        """Return the record with its key and value as bytes. Raises SerializationFailed."""
        if self._interceptors is not None:
            record = Outgoing(topic, value, key, partition, timestamp, headers)
            topic, value, key, partition, timestamp, headers = self._interceptors.send(record)
        try:
            if key is not None and self._key is not None:
                key = _encode(self._key, "key", topic, headers, key)
            if value is not None and self._value is not None:
                value = _encode(self._value, "value", topic, headers, value)
        except SerializationFailed as error:
            self.report_refused((topic, value, key, partition, timestamp, headers), error)
            raise
        return topic, value, key, partition, timestamp, headers

    def add_callbacks(self, delivery: Delivery) -> None:
        """Have interceptors and callbacks called when the outcome of a record is known."""
        for call in self._callbacks:
            delivery.add_done_callback(partial(_tell, call))

    def report_refused(self, record: PreparedRecord, error: ClientError) -> None:
        """Report a record that the producer did not accept to the interceptors."""
        if self._interceptors is not None:
            partition = -1 if record[3] is None else record[3]
            self._interceptors.acknowledge(RecordMetadata(record[0], partition, -1, -1), error)

    def close(self) -> None:
        """Close the interceptors."""
        if self._interceptors is not None:
            self._interceptors.close()


def _tell(call: DeliveryCallback, delivery: Delivery) -> None:
    call(delivery.metadata(), delivery.exception())


def _encode(coding: SerializerCall, what: str, topic: str, headers: Any, data: Any) -> Any:
    try:
        return coding.call(topic, headers, data) if coding.contextual else coding.call(data)
    except Exception as error:
        message = f"the {what} for {topic} could not be serialized: {error}"
        raise SerializationFailed(message) from error
