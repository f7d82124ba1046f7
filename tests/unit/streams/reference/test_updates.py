"""One change a key and micro-batch: updates="last", and what Spark counts by itself."""

from typing import Any

from ottla.streams import App

WORDS = [("a", "x", 1), ("b", "x", 2), ("a", "x", 3), ("a", "x", 12), ("c", "x", 13), ("b", "x", 14)]


def made(app: App, given: dict[str, list[Any]], batches: int = 1) -> dict[str, list[Any]]:
    written = app.test(given, batches=batches)
    return {
        topic: [(each.key, each.value, each.timestamp) for each in each] for topic, each in written.items()
    }


def counting(**settings: Any) -> App:
    app = App("counting", updates="last", **settings)
    app.stream("words").group_by_key().count().to("count")
    return app


def test_the_last_change_of_each_key_is_shown_once_a_micro_batch() -> None:
    assert made(counting(), {"words": WORDS}) == {"count": [("a", 3, 12), ("c", 1, 13), ("b", 2, 14)]}
    assert made(counting(), {"words": WORDS}, batches=2) == {
        "count": [("b", 1, 2), ("a", 2, 3), ("a", 3, 12), ("c", 1, 13), ("b", 2, 14)]
    }
    assert len(made(counting(), {"words": WORDS}, batches=6)["count"]) == 6


def test_a_row_that_comes_and_goes_in_one_micro_batch_says_nothing() -> None:
    app = App("rows", updates="last")
    app.table("rows").filter(lambda v: v != "no").group_by(lambda k, v: (v, v)).count().to("count")
    given: dict[str, list[Any]] = {"rows": [("k", "x"), ("k", None), ("q", "y")]}
    assert [each[:2] for each in made(app, given)["count"]] == [("y", 1)]


def test_operators_take_their_turns_and_a_join_goes_by_time() -> None:
    app = App("turns", updates="last")
    words = app.stream("words")
    counts = words.group_by_key().count()
    app.stream("asks").join(counts, lambda ask, count: f"{ask}{count}", value=str).to("answers")
    given = {"words": WORDS, "asks": [("a", "early", 2), ("a", "late", 20)]}
    # The first ask comes before the one change that a shows in the micro-batch, which bears the time of its last word.
    assert [value for _, value, _ in made(app, given)["answers"]] == ["late3"]


def test_records_keep_their_order_where_paths_branch_and_merge() -> None:
    app = App("paths", updates="last")
    words = app.stream("words", value=int)
    low, rest = words.split({"low": lambda v: v < 3}, default="rest").values()
    again = low.map_values(lambda v: v + 10)
    again.merge(rest, words).to("merged")
    rest.merge(low).group_by_key().reduce(lambda before, new: new).to("newest")
    written = made(app, {"words": [("a", 5, 1), ("a", 1, 2), ("a", 7, 9), ("a", 2, 4)]})
    assert [value for _, value, _ in written["merged"]] == [5, 5, 11, 1, 7, 7, 12, 2]
    assert written["newest"] == [("a", 2, 9)]


def test_records_may_be_written_by_many_sinks_and_by_none() -> None:
    app = App("loose", updates="last")
    app.stream("words").group_by_key().count(name="per-word")
    assert [each[:2] for each in made(app, {"words": WORDS})["per-word"]] == [("a", 3), ("c", 1), ("b", 2)]


def test_a_count_by_sparks_own_aggregation_bears_no_headers() -> None:
    from ottla.streams import record

    app = counting(native=True)
    written = app.test({"words": [record("x", "a", 1, [("h", b"1")]), record("y", "a", 2)]})
    assert [(each.key, each.value, each.timestamp, each.headers) for each in written["count"]] == [
        ("a", 2, 2, ())
    ]
