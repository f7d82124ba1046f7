"""What a Python process of Spark's has loaded stays loaded, so its garbage collector need not look at it again.

Spark has a worker collect garbage after each task. With PyArrow, pandas and ourselves loaded that takes 30 ms, more
than a task of a small micro-batch takes. Frozen objects are passed over.
"""

import gc

from ottla.world.shell import variable

# Something is loaded with the first connection, something with the first work done. To freeze what is there after each
# task would be to keep what tasks leave behind.
_left = 3


def settle() -> None:
    """Freeze what is loaded, the first few times, if this process is a worker that Spark uses again."""
    global _left
    if _left and variable("SPARK_REUSE_WORKER") is not None:
        _left -= 1
        gc.collect()
        gc.freeze()
