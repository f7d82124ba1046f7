"""Which line is the user's own."""

import sys

import pytest

from ottla.spark import line
from ottla.spark.line import Line, calling, lines, own

THEIRS = [
    "/srv/env/lib/python3.11/site-packages/pyspark/sql/session.py",
    "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py",
    "/opt/spark/python/lib/py4j-0.10.9.9-src.zip/py4j/java_gateway.py",
    "/usr/lib/python3.11/json/decoder.py",
    "<frozen runpy>",
    "/srv/env/lib/python3.12/site-packages/ottla/streams/app.py",
    "/checkout/src/ottla/spark/start.py",
    line.__file__,
]
OWN = [
    "/app/orders.py",
    "orders.py",
    "<stdin>",
    "<ipython-input-3-4f>",
    "/tmp/ipykernel_7/12.py",
    "/srv/ottla/shop/a.py",
]


@pytest.mark.parametrize("file", THEIRS)
def test_not_the_users(file: str) -> None:
    assert own([Line(file, 1)]) is None


@pytest.mark.parametrize("file", OWN)
def test_the_users(file: str) -> None:
    assert own([Line(file, 1), *(Line(each, 2) for each in THEIRS)]) == Line(file, 1)


def test_the_innermost_counts() -> None:
    assert own([Line("/app/main.py", 1), Line("/app/orders.py", 2), Line(THEIRS[0], 3)]) == Line(
        "/app/orders.py", 2
    )


def test_a_program_that_was_installed() -> None:
    packaged = Line("/srv/env/lib/python3.11/site-packages/shop/orders.py", 7)
    assert own([Line(THEIRS[0], 1), packaged, Line(THEIRS[1], 3)]) == packaged
    assert own([Line("/app/main.py", 1), packaged]) == Line("/app/main.py", 1)


def test_lines_of_a_traceback() -> None:
    text = """Traceback (most recent call last):
  File "/app/main.py", line 3, in <module>
    run()
    ~~~^^
  File "/app/orders.py", line 9, in price
  File "<stdin>", line 1
"""
    assert lines(text) == [
        Line("/app/main.py", 3, "<module>", "run()"),
        Line("/app/orders.py", 9, "price"),
        Line("<stdin>", 1),
    ]


def test_who_is_calling() -> None:
    here = calling()
    assert here is not None
    assert (here.file, here.function, here.source) == (__file__, "test_who_is_calling", "here = calling()")


def test_a_traceback_leads_to_the_line() -> None:
    def fail() -> None:
        raise KeyError("x")

    try:
        fail()
    except KeyError as error:
        found = calling(error.__traceback__)
    assert found is not None
    assert (found.function, found.source) == ("fail", 'raise KeyError("x")')
    assert sys.exc_info() == (None, None, None)


def test_how_it_is_written() -> None:
    assert (
        str(Line("/app/orders.py", 9, "price", "return 1"))
        == '  File "/app/orders.py", line 9, in price\n    return 1'
    )
    assert str(Line("/app/orders.py", 9)) == '  File "/app/orders.py", line 9'
