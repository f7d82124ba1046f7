"""The stores of an operator in Spark's state: one map of bytes to bytes each, spoken to in many requests at a time.

A call of PySpark's MapState is a round trip over a socket to the JVM: some 55 µs on two cores, much of it two processes
waiting for each other. The protocol allows many requests before the first answer is read, and so a call costs some
35 µs, nearly all of it the JVM's. Requests under way are kept to a few, so that neither end waits with a full buffer
for the other.

B1  What is sent is what PySpark's own client sends, field for field. Where its inside is not as expected, its own
    calls do.
"""

import pickle
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql.types import BinaryType, StructField, StructType

BYTES = StructType([StructField("data", BinaryType())])

_HEAD = struct.Struct("!ii")
_SIZE = struct.Struct("!i")
# Answers to so many requests, or of requests so large, fit into the buffers of a socket.
_REQUESTS_MAX = 64
_BYTES_MAX = 16_384


class MapBacking:
    """A MapState of bytes to bytes under the grouping key that is set."""

    def __init__(self, state: Any) -> None:
        self._state = state
        try:
            from pyspark.sql.streaming.proto import StateMessage_pb2 as message

            client = state._mapStateClient
            self._file: Any = client._stateful_processor_api_client.sockfile
            self._name = state._stateName
            self._message = message
        except (ImportError, AttributeError):
            self._file = None

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none."""
        if self._file is None:
            rows = [self._state.getValue((key,)) for key in keys]
            return [None if row is None else bytes(row[0]) for row in rows]
        message = self._message
        calls = (
            message.MapStateCall(stateName=self._name, getValue=message.GetValue(userKey=_row(key)))
            for key in keys
        )
        return [bytes(pickle.loads(found)[0]) if found else None for found in self._asked(calls)]

    def put_many(self, entries: list[tuple[bytes, bytes]]) -> None:
        """Keep values under their keys."""
        if self._file is None:
            for key, value in entries:
                self._state.updateValue((key,), (value,))
            return
        message = self._message
        for _ in self._asked(
            message.MapStateCall(
                stateName=self._name, updateValue=message.UpdateValue(userKey=_row(key), value=_row(value))
            )
            for key, value in entries
        ):
            pass

    def remove_many(self, keys: list[bytes]) -> None:
        """Forget keys."""
        if self._file is None:
            for key in keys:
                self._state.removeKey((key,))
            return
        message = self._message
        for _ in self._asked(
            message.MapStateCall(stateName=self._name, removeKey=message.RemoveKey(userKey=_row(key)))
            for key in keys
        ):
            pass

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all entries. Others may be asked for meanwhile."""
        for key, value in self._state.iterator():
            yield bytes(key[0]), bytes(value[0])

    def _asked(self, calls: Iterable[Any]) -> Iterator[bytes]:
        message = self._message
        waiting, size, buffer = 0, 0, bytearray()
        for call in calls:
            request = message.StateRequest(
                stateVariableRequest=message.StateVariableRequest(mapStateCall=call)
            ).SerializeToString()
            buffer += _HEAD.pack(0, len(request))
            buffer += request
            waiting += 1
            size += len(request)
            if waiting >= _REQUESTS_MAX or size >= _BYTES_MAX:
                yield from self._answers(buffer, waiting)
                waiting, size, buffer = 0, 0, bytearray()
        if waiting:
            yield from self._answers(buffer, waiting)

    def _answers(self, buffer: bytearray, count: int) -> list[bytes]:
        file = self._file
        file.write(buffer)
        file.flush()
        found = []
        failure = ""
        for _ in range(count):
            head = file.read(4)
            if len(head) < 4:  # it has hung up, after saying why
                failure = failure or "the other end has closed"
                break
            (size,) = _SIZE.unpack(head)
            answer = self._message.StateResponse()
            answer.ParseFromString(file.read(size))
            if answer.statusCode:
                failure = failure or answer.errorMessage or "no reason given"
            found.append(answer.value)
        if failure:
            raise PySparkRuntimeError(f"the state of {self._name} could not be reached: {failure}")
        return found


def _row(data: bytes) -> bytes:
    # A row of one column, as PySpark pickles it.
    return pickle.dumps((data,), pickle.HIGHEST_PROTOCOL)
