"""Bugs that cost others their users' records, replayed here by name."""

from tests.unit.controller.stage import Stage, wish

MIN_ISR = {"min.insync.replicas": "2"}


def test_kip_966_the_last_replica_standing_does_not_lead_after_it_has_lost_its_log() -> None:
    """All others had fallen out of sync; the last one crashes, loses its tail, and comes back first."""
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3]}, configs=MIN_ISR))
    stage.heartbeat(3, want_fence=True)
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr) == (2, (2,), (3,)), "3 has everything that was acknowledged"
    stage.restart(2, clean=False)
    stage.heartbeat(2)
    state = stage.state("one")
    assert 2 not in state.elr
    assert state.leader == -1, "who stopped uncleanly may lack what was acknowledged"
    stage.heartbeat(3)
    state = stage.state("one")
    assert (state.leader, state.isr, state.leader_recovery_state) == (3, (3,), 0)


def test_kip_966_a_clean_stop_keeps_a_replica_eligible() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3]}, configs=MIN_ISR))
    stage.heartbeat(3, want_fence=True)
    stage.heartbeat(2, want_fence=True)
    stage.restart(2, clean=True)
    stage.heartbeat(2)
    assert stage.state("one").leader == 2
