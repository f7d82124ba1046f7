"""Which tables must know what was there before a change."""

from ottla.streams import App, TimeLimit
from ottla.streams.plan.old_values import wants_old


def test_who_keeps_rows_of_its_own_asks_for_nothing() -> None:
    app = App("x")
    users, cities = app.table("users"), app.table("cities")
    users.join(cities, lambda user, city: f"{user}{city}", value=str).to("joined")
    app.stream("clicks").join(users, lambda click, user: f"{click}{user}", value=str).to("clicked")
    users.map_values(lambda value: value.upper()).to("shouted")
    assert wants_old(app.plan()) == frozenset()


def test_who_subtracts_filters_or_holds_back_asks_also_through_a_mapping() -> None:
    app = App("x")
    grouped, filtered, held, mapped = (app.table(name) for name in ("a", "b", "c", "d"))
    grouped.group_by(lambda key, value: (value, key)).count().to("counts")
    filtered.filter(lambda value: value == "x").to("filtered")
    held.suppress(TimeLimit(10)).to("held")
    again = mapped.map_values(lambda value: value.upper())
    again.filter(lambda value: value == "x").to("again")
    wanted = {each.name for each in wants_old(app.plan())}
    assert wanted == {grouped.name, filtered.name, held.name, mapped.name, again.name}
