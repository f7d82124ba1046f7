"""What happens to a record between the program and its bytes, where anything does: interceptors, then serializers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from ottla.client.duration import Time
from ottla.client.errors import ClientError, SerializationFailed
from ottla.client.producer.delivery import Delivery, DeliveryCallback
from ottla.client.producer.interceptor import Interceptors, Outgoing
from ottla.client.record import RecordMetadata
from ottla.client.serializer import Coding

Prepared = tuple[str, Any, Any, int | None, Time | None, Any]


class Preparation:
    """Prepares records for one producer, and tells those who asked for it what became of them."""

    def __init__(
        self,
        key: Coding | None,
        value: Coding | None,
        interceptors: Interceptors | None,
        on_delivery: DeliveryCallback | None,
    ) -> None:
        self._key = key
        self._value = value
        self._interceptors = interceptors
        self._told: list[Callable[[RecordMetadata, ClientError | None], object]] = []
        if interceptors is not None:
            self._told.append(interceptors.acknowledge)
        if on_delivery is not None:
            self._told.append(on_delivery)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self | None:
        """Return the preparation that these settings ask for, or None when there is nothing to do."""
        interceptors = settings["interceptor.classes"]
        made = cls(
            settings["key.serializer"],
            settings["value.serializer"],
            Interceptors(interceptors) if interceptors else None,
            settings["on.delivery"],
        )
        return made if made._key or made._value or made._told else None

    def prepare(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: Time | None,
        headers: Any,
    ) -> Prepared:
        """Return the record with bytes for key and value; SerializationFailed says why there are none."""
        if self._interceptors is not None:
            record = Outgoing(topic, value, key, partition, timestamp, headers)
            topic, value, key, partition, timestamp, headers = self._interceptors.send(record)
        try:
            if key is not None and self._key is not None:
                key = _encode(self._key, "key", topic, headers, key)
            if value is not None and self._value is not None:
                value = _encode(self._value, "value", topic, headers, value)
        except SerializationFailed as error:
            self.refused((topic, value, key, partition, timestamp, headers), error)
            raise
        return topic, value, key, partition, timestamp, headers

    def watch(self, delivery: Delivery) -> None:
        """Have those told who asked for it when the outcome of a record is known."""
        for call in self._told:
            delivery.add_done_callback(partial(_tell, call))

    def refused(self, record: Prepared, error: ClientError) -> None:
        """Tell interceptors of a record that was not taken."""
        if self._interceptors is not None:
            partition = -1 if record[3] is None else record[3]
            self._interceptors.acknowledge(RecordMetadata(record[0], partition, -1, -1), error)

    def close(self) -> None:
        """Tell interceptors that there will be no more records."""
        if self._interceptors is not None:
            self._interceptors.close()


def _tell(call: DeliveryCallback, delivery: Delivery) -> None:
    call(delivery.metadata(), delivery.exception())


def _encode(coding: Coding, what: str, topic: str, headers: Any, data: Any) -> Any:
    try:
        return coding.call(topic, headers, data) if coding.contextual else coding.call(data)
    except Exception as error:
        message = f"the {what} for {topic} could not be serialized: {error}"
        raise SerializationFailed(message) from error
