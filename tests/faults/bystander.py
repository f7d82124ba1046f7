"""A well-behaved client that produces and consumes all the time, and complains about everything it notices."""

import threading
import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

STILL_SECONDS_MAX = 5.0


class Bystander:
    """Writes numbered records with a librdkafka producer and reads them back, on a topic that exists."""

    def __init__(self, bootstrap: str, topic: str, end_offset: int) -> None:
        """Begin where the topic ends; the records are numbered by their offsets."""
        self.complaints: list[str] = []
        self.written = self.read = end_offset
        self.slowest_seconds = 0.0
        settings = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "error_cb": self._complain,
        }
        self._producer = Producer(
            settings | {"enable.idempotence": True, "linger.ms": 1, "message.timeout.ms": 10_000}
        )
        self._consumer = Consumer(settings | {"group.id": "bystander", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, 0, end_offset)])
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bystander", daemon=True)

    def __enter__(self) -> "Bystander":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._consumer.close()

    def _complain(self, error: KafkaError) -> None:
        self.complaints.append(str(error))

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.is_set():
            sent_at = time.monotonic()
            done = threading.Event()

            def delivered(error: KafkaError | None, _: object, done: threading.Event = done) -> None:
                if error is not None:
                    self._complain(error)
                done.set()

            self._producer.produce(self._topic, b"%d" % self.written, on_delivery=delivered)
            self.written += 1
            while not done.is_set() and time.monotonic() - sent_at < STILL_SECONDS_MAX:
                self._producer.poll(0.01)
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - sent_at)
            for message in self._consumer.consume(100, timeout=0.005):
                if (error := message.error()) is not None:
                    self._complain(error)
                elif message.value() != b"%d" % self.read:
                    self.complaints.append(f"read {message.value()!r} instead of {self.read}")
                else:
                    self.read += 1
                    last = time.monotonic()
            if time.monotonic() - last > STILL_SECONDS_MAX:
                self.complaints.append("nothing has been read for a while")
                last = time.monotonic()
