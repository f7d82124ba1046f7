"""JoinGroup: who may come in, and whom it disturbs."""

import pytest

from ottla.groups.classic.joining import METADATA_BYTES_MAX
from ottla.replicated.keyed import Client
from ottla.wire.errors import ErrorCode
from tests.unit.groups.test_classic_party import DELAY_MS, REBALANCE_MS, SESSION_MS, Party


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "me"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_makes_no_sense_leaves_no_group(fields, code):
    party = Party()
    member_id = fields.pop("member_id", "")
    assert party.code(party.join(member_id, **fields)) == code
    assert party.bench.records == []
    assert not party.machine.shelf.groups


def test_the_limits_of_a_session_are_allowed():
    party = Party()
    for session_ms in (6_000, 1_800_000):
        assert party.code(party.join(session_timeout_ms=session_ms)) == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize("how", [{"protocols": ()}, {"protocol_type": ""}])
def test_a_member_must_speak_something(how):
    party = Party()
    assert party.code(party.join(**how)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_must_speak_what_the_others_speak():
    party = Party()
    party.settled()
    for how in ({"protocol_type": "connect"}, {"protocols": (("sticky", b""),)}):
        assert party.code(party.join(**how)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert party.state() == "Stable"


def test_an_empty_group_may_take_up_another_protocol():
    party = Party()
    (one,) = party.settled()
    party.leave((one, None))
    _, token = party.enter(protocol_type="connect", protocols=(("v1", b""),))
    party.pass_time(DELAY_MS)
    assert party.answer(token).protocol_type == "connect"
    assert party.answer(token).generation_id == 3


def test_members_vote_among_the_protocols_that_all_speak():
    party = Party()
    wishes = [("a", "b", "c"), ("c", "b", "a"), ("b", "c"), ("d", "c", "b")]
    tokens = [party.enter(protocols=tuple((name, name.encode()) for name in each))[1] for each in wishes]
    party.pass_time(DELAY_MS * 2)
    # a and d are out; the votes are b c b c, and b was the first to have as many.
    assert {party.answer(token).protocol_name for token in tokens} == {"b"}
    assert [each.metadata for each in party.answer(tokens[0]).members] == [b"b"] * 4


def test_a_member_id_that_was_never_given_is_unknown():
    party = Party()
    party.settled()
    assert party.code(party.join("ghost")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_joins_again_unchanged_disturbs_nobody():
    party = Party()
    _, two = party.settled(b"one", b"two")
    answer = party.answer(party.join(two, protocols=(("range", b"two"),)))
    assert (answer.error_code, answer.generation_id, answer.members) == (ErrorCode.NONE, 1, [])
    assert party.state() == "Stable"


def test_a_leader_that_joins_again_calls_everyone_together():
    party = Party()
    one, two = party.settled(b"one", b"two")
    token = party.join(one, protocols=(("range", b"one"),))
    assert party.answer(token) is None
    assert party.heartbeat(two) == ErrorCode.REBALANCE_IN_PROGRESS
    other = party.join(two, protocols=(("range", b"two"),))
    assert party.answer(token).generation_id == party.answer(other).generation_id == 2


def test_a_follower_with_news_calls_everyone_together():
    party = Party()
    one, two = party.settled(b"one", b"two")
    token = party.join(two, protocols=(("range", b"news"),))
    leading = party.join(one, protocols=(("range", b"one"),))
    assert party.code(token) == ErrorCode.NONE
    assert [each.metadata for each in party.answer(leading).members] == [b"one", b"news"]


def test_one_who_missed_the_answer_joins_the_same_generation_again():
    party = Party()
    one, _ = party.enter()
    two, _ = party.enter()
    party.pass_time(DELAY_MS * 2)
    for member_id, seen in ((one, [one, two]), (two, [])):
        answer = party.answer(party.join(member_id))
        assert answer.generation_id == 1
        assert [each.member_id for each in answer.members] == seen


def test_news_while_the_leader_computes_begin_another_rebalance():
    party = Party()
    one, _ = party.enter()
    two, _ = party.enter()
    party.pass_time(DELAY_MS * 2)
    waiting = party.sync(two)
    token = party.join(one, protocols=(("range", b"news"),))
    assert party.code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert party.answer(token) is None
    party.join(two)
    assert party.answer(token).generation_id == 2


def test_a_join_that_is_sent_again_displaces_the_first():
    party = Party()
    one, first = party.enter()
    second = party.join(one)
    assert party.code(first) == ErrorCode.REBALANCE_IN_PROGRESS
    party.pass_time(DELAY_MS)
    assert party.code(second) == ErrorCode.NONE
    assert party.members() == [one]


def test_a_group_has_a_largest_size():
    party = Party(group_max_size=2)
    one, two = party.settled(b"one", b"two")
    assert party.code(party.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    party.leave((two, None))
    assert party.code(party.join()) == ErrorCode.MEMBER_ID_REQUIRED
    assert party.members() == [one]


def test_what_the_members_of_a_group_say_of_themselves_is_bounded():
    party = Party()
    half = (("range", bytes(METADATA_BYTES_MAX // 2 - 100)),)
    assert party.code(party.join(protocols=half * 3, version=2)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    ids = [party.enter(protocols=half)[0] for _ in range(2)]
    assert party.code(party.join(protocols=half)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    small, _ = party.enter(protocols=(("range", b"small"),))
    again = party.join(ids[1], protocols=half)  # its own does not count twice
    party.pass_time(DELAY_MS * 4)
    assert party.code(again) == ErrorCode.NONE
    assert sorted(party.members()) == sorted([*ids, small])


def test_the_last_to_come_is_out_when_too_many_were_given_an_id():
    party = Party(group_max_size=2)
    ids = [party.answer(party.join()).member_id for _ in range(3)]
    tokens = [party.join(id) for id in ids]
    assert party.code(tokens[2]) == ErrorCode.GROUP_MAX_SIZE_REACHED
    party.pass_time(DELAY_MS * 2)
    assert party.members() == ids[:2]


def test_a_group_that_is_too_large_when_it_is_loaded_shrinks():
    party = Party()
    party.settled(b"one", b"two", b"three")
    party.settings["group_max_size"] = 2
    small = Party(group_max_size=2)
    small.bench.machine = small.machine = party.replayed()
    small.bench.now = party.bench.now
    small.bench.ask(small.machine.lead)
    small.pass_time(0)
    assert small.state() == "PreparingRebalance"
    for number, member_id in enumerate(party.members()):
        small.token = 100 + number
        small.join(member_id)
    assert small.code(103) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert len(small.members()) == 2


def test_a_pending_member_is_waited_for_and_then_forgotten():
    party = Party()
    one, two = party.settled(b"one", b"two")
    pending = party.answer(party.join()).member_id
    assert party.state() == "Stable", "an id is not a seat"
    token = party.join(one, protocols=(("range", b"news"),))
    other = party.join(two, protocols=(("range", b"two"),))
    assert party.answer(token) is None, "the third has yet to come"
    party.pass_time(SESSION_MS)
    assert party.code(token) == party.code(other) == ErrorCode.NONE
    assert party.code(party.join(pending)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_join_in_time_is_out():
    party = Party()
    one, two = party.settled(b"one", b"two", session_timeout_ms=REBALANCE_MS * 2)
    token = party.join(one, protocols=(("range", b"one"),))
    party.pass_time(REBALANCE_MS - 1)
    assert party.answer(token) is None
    party.pass_time(1)
    assert [each.member_id for each in party.answer(token).members] == [one]
    assert party.heartbeat(two, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_another_leads_when_the_leader_does_not_come():
    party = Party()
    one, two = party.settled(b"one", b"two", session_timeout_ms=REBALANCE_MS * 2)
    token = party.join(two, protocols=(("range", b"news"),))
    party.pass_time(REBALANCE_MS)
    assert party.answer(token).leader == two
    assert party.members() == [two]
    assert one not in party.members()


def test_what_the_members_of_all_groups_hold_is_bounded():
    party = Party()
    party.machine.shelf.tally.members.bytes_max = 100_000
    large = (("range", bytes(40_000)),)
    for name in ("a", "b"):
        party.group = name
        member_id, _ = party.enter(protocols=large)
    party.group = "c"
    _, refused = party.enter(protocols=large)
    assert party.code(refused) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert party.answer(party.join()).error_code == ErrorCode.MEMBER_ID_REQUIRED, "little things come in always"
    party.group = "b"
    again = party.join(member_id, protocols=large)  # its own does not count twice
    assert party.answer(again) is None
    party.pass_time(DELAY_MS * 4)
    assert party.code(again) == ErrorCode.NONE
    synced = party.sync(member_id, assignments={member_id: bytes(40_000)})
    assert party.code(synced) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    party.leave((member_id, None))
    party.pass_time(1_000)
    party.group = "c"
    _, admitted = party.enter(protocols=large)
    assert party.answer(admitted) is None, "it waits for others, as the first of its group"


def test_names_of_protocols_and_of_clients_count_in_what_members_hold():
    """Only metadata did: one request of 93 MB with names alone was kept, and so was the next."""
    named = tuple((f"{number}" + "n" * 1_000, b"") for number in range(30))
    party = Party()
    budget = party.machine.shelf.tally.members
    budget.bytes_max = 100_000
    for party.group in ("a", "b", "c"):
        party.enter(protocols=named)
    party.group = "d"
    _, refused = party.enter(protocols=named)
    assert party.code(refused) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    wide = (("é" + "n" * 30_000, b""), ("😀" + "n" * 7_000, b""))
    party = Party()
    party.enter(protocols=wide)
    assert party.machine.shelf.groups[party.group].held_bytes >= 58_000, "characters are not bytes"


def test_an_id_that_is_brought_about_counts_with_the_name_of_its_client():
    party = Party()
    party.machine.shelf.tally.members.bytes_max = 100_000
    client = Client("c" * 30_000, "/127.0.0.1")
    codes = [party.code(party.join(client=client)) for _ in range(4)]
    assert codes == [ErrorCode.MEMBER_ID_REQUIRED] * 3 + [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert party.machine.shelf.groups[party.group].held_bytes > 90_000


def test_a_member_names_so_many_protocols_and_no_more():
    party = Party()
    many = tuple((f"p{number}", b"") for number in range(129))
    assert party.code(party.join(protocols=many, version=2)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert party.answer(party.join(protocols=many[:128], version=2)) is None
