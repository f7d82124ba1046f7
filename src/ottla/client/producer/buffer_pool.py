"""The memory for records that are not sent yet: `buffer.memory`.

Y1  Bytes are allocated for a whole batch, so a record that fits an open batch needs no allocation.
Y2  Waiting requests are served in order. A new request never gets bytes before a waiting one.
"""

from collections import deque
from collections.abc import Callable


class BufferRequest:
    """A waiting request for bytes."""

    __slots__ = ("granted", "notify", "size")

    def __init__(self, size: int, notify: Callable[[], object]) -> None:
        self.size = size
        self.notify = notify
        self.granted = False


class BufferPool:
    """The free bytes, and the requests that wait for some."""

    __slots__ = ("_requests", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._requests: deque[BufferRequest] = deque()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._requests)

    def allocate(self, size: int) -> bool:
        """Allocate bytes if there are enough and no request waits. Return whether it did."""
        if self._requests or self.free < size:
            return False
        self.free -= size
        return True

    def deallocate(self, size: int) -> None:
        """Free bytes."""
        self.free += size
        self._grant()

    def enqueue(self, size: int, notify: Callable[[], object]) -> BufferRequest:
        """Wait for bytes. `notify` is called when they are reserved for this request."""
        request = BufferRequest(size, notify)
        self._requests.append(request)
        self._grant()
        return request

    def cancel(self, request: BufferRequest) -> None:
        """Withdraw a request, or free the bytes that were reserved for it."""
        if request.granted:
            self.deallocate(request.size)
        else:
            self._requests.remove(request)
            self._grant()

    def _grant(self) -> None:
        while self._requests and self._requests[0].size <= self.free:
            request = self._requests.popleft()
            self.free -= request.size
            request.granted = True
            request.notify()
