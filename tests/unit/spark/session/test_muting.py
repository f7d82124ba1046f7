"""What is dropped of what Spark's processes say: their own troubles with each other, and nobody else's."""

from ottla.spark.muting import Muting

HUNG_UP = """\
Traceback (most recent call last):
  File "/site-packages/pyspark/daemon.py", line 264, in manager
    code = worker(sock, authenticated)
  File "/site-packages/pyspark/daemon.py", line 95, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe"""
ANOTHER = HUNG_UP.replace("BrokenPipeError: [Errno 32] Broken pipe", "MemoryError")
THE_USERS = """\
Traceback (most recent call last):
  File "/app/orders.py", line 3, in price
BrokenPipeError: [Errno 32] Broken pipe"""


def heard(text: str) -> list[str]:
    muting, some, found = Muting(), [], []
    for line in text.splitlines():
        some.append(line)
        verdict = muting(line)
        if verdict is None:
            continue
        found += [] if verdict else some
        some = []
    return found + some


def test_a_worker_that_was_hung_up_on_is_not_heard() -> None:
    assert heard(f"before\n{HUNG_UP}\nafter\n{HUNG_UP}") == ["before", "after"]


def test_other_troubles_are() -> None:
    for text in (ANOTHER, THE_USERS, f"{THE_USERS}\n{ANOTHER}", "said by a function\n  and more"):
        assert heard(text) == text.splitlines()


def test_what_java_says_of_itself_is_not_heard() -> None:
    assert heard("WARNING: Using incubator modules: jdk.incubator.vector\n\nWARNING: fire") == [
        "WARNING: fire"
    ]
