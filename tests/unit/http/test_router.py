import pytest

from ottla.http.error import HttpError
from ottla.http.route import Route
from ottla.http.router import Router


async def nothing(request, service):
    raise AssertionError


def router(*rows):
    return Router(Route(*row.split(" "), nothing) for row in rows)


def test_a_literal_goes_before_a_parameter_and_both_are_tried():
    table = router("GET /{a}", "GET /ids", "GET /ids/{id}", "GET /{a}/x/y", "DELETE /{a}")
    assert table.find("GET", b"/ids").route.path == "/ids"
    assert table.find("GET", b"/others").parameters == {"a": "others"}
    assert table.find("GET", b"/ids/x/y").route.path == "/{a}/x/y"
    assert table.find("GET", b"/ids/x").parameters == {"id": "x"}


def test_names_of_parameters_are_those_of_the_row():
    table = router("GET /{a}/{b}", "PUT /{c}/{d}")
    assert table.find("GET", b"/1/2").parameters == {"a": "1", "b": "2"}
    assert table.find("PUT", b"/1/2").parameters == {"c": "1", "d": "2"}


def test_a_parameter_that_looks_like_the_table_is_no_row_of_it():
    assert router("GET /{a}", "GET /a/b").find("GET", b"/a%2fb").parameters == {"a": "a/b"}


@pytest.mark.parametrize("path", [b"/a/b/c/d", b"//a", b"/a//", b"*", b"/\xff"])
def test_what_is_not_there(path):
    with pytest.raises(HttpError) as caught:
        router("GET /a", "GET /a/b").find("GET", path)
    assert caught.value.status in (400, 404)


def test_a_row_stands_once():
    with pytest.raises(AssertionError, match="twice"):
        router("GET /a", "GET /a")


def test_very_many_segments_cost_nothing():
    with pytest.raises(HttpError):
        router("GET /{a}/{b}", "GET /x/{b}/c").find("GET", b"/x" * 30_000)
