"""The image, looked at from the side of its brokers."""

from ottla.controller.census import Census
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from tests.unit.controller.stage import Stage, wish


def seen(census: Census) -> tuple[object, ...]:
    brokers = {broker: set(census.on(broker)) for broker in range(1, 6)}
    return brokers, set(census.leaderless), set(census.imbalanced), set(census.moving)


def check(stage: Stage) -> Census:
    """What was followed is what would be counted anew."""
    followed = stage.controller._now().census
    assert seen(followed) == seen(Census(stage.image))
    return followed


def test_the_census_follows_the_image() -> None:
    stage = Stage(1, 2, 3, 4)
    stage.create(wish("one", assignments={0: [2, 3], 1: [3, 4]}), wish("two", 6, 3))
    stage.create(wish("alone", assignments={0: [4]}))
    alone = stage.image.topics.by_name["alone"].id
    one = stage.image.topics.by_name["one"].id
    assert (one, 1) in check(stage).on(3)
    stage.heartbeat(4, want_fence=True)
    census = check(stage)
    assert (list(census.leaderless), (alone, 0) in census.imbalanced) == ([(alone, 0)], True)
    stage.reassign([1, 2], index=0)
    assert list(check(stage).moving) == [(one, 0)]
    stage.alter_partition([2, 3, 1], index=0)
    census = check(stage)
    assert not census.moving
    assert (one, 0) in census.on(1)
    assert (one, 0) not in census.on(3)
    stage.heartbeat(4)
    check(stage)
    request = DeleteTopicsRequest(topic_names=["one", "two", "alone"])
    stage.do(lambda controller, now: controller.delete_topics(request, 5, now))
    census = check(stage)
    assert [list(census.on(broker)) for broker in range(1, 5)] == [[]] * 4


def test_a_new_controller_counts_anew() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", 4, 2))
    stage.fail_over(2)
    check(stage)
