"""Share sessions open, go on, and end."""

import pytest

from ottla.share.session import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSessions, next_epoch
from ottla.wire.errors import BrokerError, ErrorCode

KEY = SessionKey("group", "member")
A, B, C = ((bytes([number]) * 16, number) for number in (1, 2, 3))


def refusal(call, *arguments, **how) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        call(*arguments, **how)
    return refused.value.code


def test_a_session_goes_on_epoch_by_epoch() -> None:
    sessions = ShareSessions(10)
    session = sessions.fetch(KEY, INITIAL_EPOCH, [A, B], connection_id=1)
    assert (session.epoch, list(session.partitions)) == (1, [A, B])
    assert sessions.fetch(KEY, 1, [C, A], [B], connection_id=1) is session
    assert list(session.partitions) == [A, C]
    assert sessions.acknowledge(KEY, 2).epoch == 3
    assert refusal(sessions.fetch, KEY, 2, [], connection_id=1) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert refusal(sessions.acknowledge, KEY, 9) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert refusal(sessions.acknowledge, KEY, INITIAL_EPOCH) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.fetch(KEY, FINAL_EPOCH, [], connection_id=1) is session
    assert sessions.acknowledge(KEY, FINAL_EPOCH) is session
    assert sessions.close(KEY) == [A, C]
    assert refusal(sessions.close, KEY) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refusal(sessions.fetch, KEY, FINAL_EPOCH, [], connection_id=1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refusal(sessions.fetch, KEY, 3, [], connection_id=1) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_there_are_only_so_many() -> None:
    sessions = ShareSessions(2)
    for member in ("m1", "m2"):
        sessions.fetch(SessionKey("group", member), INITIAL_EPOCH, [A], connection_id=hash(member))
    code = refusal(sessions.fetch, KEY, INITIAL_EPOCH, [A], connection_id=3)
    assert code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    # A member that begins anew takes its own place.
    assert sessions.fetch(SessionKey("group", "m1"), INITIAL_EPOCH, [B], connection_id=4).epoch == 1
    assert len(sessions) == 2


def test_a_new_session_has_nothing_to_acknowledge() -> None:
    sessions = ShareSessions(2)
    code = refusal(sessions.fetch, KEY, INITIAL_EPOCH, [A], acknowledges=True, connection_id=1)
    assert code is ErrorCode.INVALID_REQUEST
    assert len(sessions) == 0


def test_a_session_ends_with_its_connection() -> None:
    sessions = ShareSessions(2)
    sessions.fetch(KEY, INITIAL_EPOCH, [A], connection_id=1)
    session = sessions.fetch(KEY, INITIAL_EPOCH, [B], connection_id=2)
    assert sessions.disconnected(1) == []
    assert sessions.reads("group")
    assert sessions.disconnected(2) == [session]
    assert not sessions.reads("group")
    assert sessions.disconnected(2) == []


def test_an_answer_names_what_it_has_to() -> None:
    session = ShareSessions(2).fetch(KEY, INITIAL_EPOCH, [A, B], connection_id=1)
    session.update([C], [])
    assert session.answers(C, has_records=False, has_error=False)
    assert not session.answers(C, has_records=False, has_error=False)
    assert session.answers(A, has_records=False, has_error=True)
    # Told once more, without the error.
    assert session.answers(A, has_records=False, has_error=False)
    assert session.answers(A, has_records=True, has_error=False)
    assert list(session.partitions) == [B, C, A]


def test_partitions_take_turns() -> None:
    session = ShareSessions(2).fetch(KEY, INITIAL_EPOCH, [A, B, C], connection_id=1)
    assert session.rotated(INITIAL_EPOCH) == [A, B, C]
    assert session.rotated(1) == [B, C, A]
    assert session.rotated(3) == [A, B, C]


def test_epochs_come_round() -> None:
    assert next_epoch(FINAL_EPOCH) == FINAL_EPOCH
    assert next_epoch(0x7FFFFFFF) == 1


def test_all_sessions_of_a_connection_end_with_it() -> None:
    sessions = ShareSessions(3)
    keys = [SessionKey("group", "m1"), SessionKey("group", "m2"), SessionKey("other", "m1")]
    made = [sessions.fetch(key, INITIAL_EPOCH, [A], connection_id=1) for key in keys]
    moved = sessions.fetch(keys[1], INITIAL_EPOCH, [A], connection_id=2)
    assert sessions.disconnected(1) == [made[0], made[2]]
    assert [sessions.find(key) for key in keys] == [None, moved, None]
    assert sessions.reads("group")
    assert sessions.disconnected(2) == [moved]
    for _ in range(3):  # there is room again
        for key in keys:
            sessions.fetch(key, INITIAL_EPOCH, [A], connection_id=3)
        for key in keys:
            sessions.close(key)
    assert not sessions._by_connection
