"""What the owners of a heritage do on the server that has taken over."""

from ottla.wire.errors import ErrorCode
from tests.compat.answers import plain
from tests.compat.asking_share import ACCEPT
from tests.compat.asking_transactions import begin, producer, settle
from tests.compat.heritage import RECORDS, Clan, acknowledge, acquire, fill_topic, write
from tests.compat.rows import Scene, codes
from tests.compat.scenes import heartbeat
from tests.peers.deadline import eventually

E = ErrorCode


def go_on(scene: Scene, clan: Clan) -> None:
    """What the owners do next: members stay, offsets are read, transactions end, and old producers are fenced."""
    generation = {"generation_id": scene[f"generation of {clan.classic}"]}
    who = {"group_id": clan.classic, "member_id": scene[f"member of {clan.classic}"]}
    scene.do("Heartbeat", 4, **who, **generation, group_instance_id="instance")
    epoch = scene[f"epoch of {clan.consumer}"]
    assert (
        scene.do("ConsumerGroupHeartbeat", 1, **heartbeat(clan.consumer, "one", epoch)).member_epoch == epoch
    )
    epoch = scene[f"epoch of {clan.streams}"]
    assert scene.do("StreamsGroupHeartbeat", 0, **heartbeat(clan.streams, "one", epoch)).member_epoch == epoch
    epoch = scene[f"epoch of {clan.share}"]
    who = {"group_id": clan.share, "member_id": "one", "member_epoch": epoch}
    assert scene.do("ShareGroupHeartbeat", 1, **who).member_epoch == epoch
    acquired = acquire(scene, clan, "two")
    assert acquired == [(7, 9, 3), (10, 11, 2), (13, 19, 2)], acquired
    acknowledge(scene, clan, "two", 1, (7, 11, ACCEPT), (13, 19, ACCEPT))
    fill_topic(scene, clan.shared, 1)
    acquired = acquire(scene, clan, "two", 2)
    assert acquired == [(RECORDS, RECORDS, 1)], acquired
    acknowledge(scene, clan, "two", -1)
    _end_transactions(scene, clan)


def _end_transactions(scene: Scene, clan: Clan) -> None:
    fetch = {"groups": [{"group_id": clan.copied, "topics": None}], "require_stable": True}
    eventually(lambda: state_of(scene, clan.prepared) == "CompleteCommit")
    assert state_of(scene, clan.open) == "Ongoing"
    assert codes(plain(scene.ask("OffsetFetch", 8, **fetch))) == (E.UNSTABLE_OFFSET_COMMIT,)
    # The answer to the last end was lost: it is given again, with the epoch that it gave then.
    last = producer(scene, clan.committed)
    again = scene.do("EndTxn", 5, **last, committed=True)
    assert (again.producer_id, again.producer_epoch) == (last["producer_id"], last["producer_epoch"] + 1)
    for name in (clan.committed, clan.open):
        old = producer(scene, name)
        begin(scene, name)
        new = producer(scene, name)
        assert new["producer_id"] == old["producer_id"]
        assert new["producer_epoch"] > old["producer_epoch"]
        fenced = scene.ask("EndTxn", 5, **old, committed=True)
        assert fenced.error_code == E.PRODUCER_FENCED
    assert state_of(scene, clan.open) == "Empty"
    # What was open is aborted, and what was read with it is read again.
    found = scene.do("OffsetFetch", 8, **fetch).groups[0].topics[0].partitions[0]
    assert (found.committed_offset, found.metadata) == (8, f"by {clan.committed}")
    write(scene, clan, clan.open)
    scene.do("EndTxn", 5, **producer(scene, clan.open), committed=True)
    settle(scene, clan.open)
    eventually(lambda: state_of(scene, clan.overdue) == "CompleteAbort")


def state_of(scene: Scene, name: str) -> str:
    """The state of a transaction."""
    found = scene.do("DescribeTransactions", 0, transactional_ids=[name]).transaction_states[0]
    state: str = found.transaction_state
    return state
