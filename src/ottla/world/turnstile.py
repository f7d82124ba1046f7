"""For what several threads of a user's program may ask for at once, and must get one after another."""

import threading
from contextlib import AbstractContextManager


def turnstile() -> AbstractContextManager[bool]:
    """Return what only one thread at a time is within."""
    return threading.Lock()
