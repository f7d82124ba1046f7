"""Long work of a machine, such as forgetting all that concerned a topic, in steps that are each short.

P1  What a step looks at and what it writes costs no more than `STEP_COST`, or little more than one piece of the work.
P2  A step decides by the state as it finds it: others have been at it since the step before.
"""

from collections.abc import Iterable, Iterator

from ottla.replicated.decision import Decision

# In look-ups of a table, of which a step may take so many; what else costs is reckoned in them.
STEP_COST = 20_000
RECORD_COST = 20  # of a short record: to make, to write, and to take in
STEP_BYTES = 512 << 10  # which the records of a step have, or little more than one piece of the work
_BYTES_A_COST = STEP_BYTES // STEP_COST

Piece = tuple[int, tuple[object, ...]]  # what it cost, and the records that it asks for
Steps = Iterator[Decision[None]]


def cost_of(name: str) -> int:
    """Return what a short record costs with a name in it that may be long."""
    return RECORD_COST + len(name) // _BYTES_A_COST


def in_steps(pieces: Iterable[Piece]) -> Steps:
    """Put pieces together into steps. A piece is taken when its step is due, and not before (P2).

    What is forgotten has been let in, so the log takes its records however long they are.
    """
    records: list[object] = []
    spent = 0
    for cost, wanted in pieces:
        records += wanted
        spent += cost
        if spent >= STEP_COST:
            yield Decision(None, tuple(records), any_length=True)
            records, spent = [], 0
    if records:
        yield Decision(None, tuple(records), any_length=True)
