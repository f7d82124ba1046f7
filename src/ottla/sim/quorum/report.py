"""A failure, told step by step."""

from collections import deque

from ottla.raft.event import Event, Request, Response
from ottla.raft.event import Failure as RequestFailure
from ottla.raft.ready import Ready, Reply, Send
from ottla.sim.quorum.cluster import START_MS
from ottla.sim.quorum.node import Call, SimNode
from ottla.sim.quorum.simulation import Failure, simulate


def tell(failure: Failure, steps: int) -> str:
    """The last steps before a law was broken, which law it was, and how to see it again."""
    lines: deque[str] = deque(maxlen=steps)

    def watch(now: int, node: SimNode, event: Event, ready: Ready) -> None:
        lines.append(step_line(now - START_MS, node, event, ready))

    again = simulate(failure.scenario, failure.seed, failure.without, watch)
    perils = ", ".join(again.perils) if again is not None else ""
    return "\n".join([*lines, "", f"perils: {perils or 'none'}", str(again or failure), ""])


def step_line(now: int, node: SimNode, event: Event, ready: Ready) -> str:
    """One step of one replica."""
    raft = node.raft
    role = type(raft.replica.role).__name__ if raft is not None else "down"
    epoch = raft.epoch if raft is not None else -1
    parts = [f"{now:6d} ms  {node.id:2d} {role:<11} epoch {epoch}  {event_text(event):<44}"]
    if ready.state is not None:
        parts.append(f"remember {tuple(ready.state[:3])}")
    if ready.reset_to is not None:
        parts.append(f"reset to {tuple(ready.reset_to)}")
    if ready.truncate_to is not None:
        parts.append(f"truncate to {ready.truncate_to}")
    if ready.append and raft is not None:
        parts.append(f"append to {raft.end_offset}")
    if ready.committed is not None:
        parts.append(f"committed {ready.committed}")
    if ready.leadership is not None:
        parts.append(f"told {tuple(ready.leadership)}")
    words = [*(word_text(word) for word in ready.send_now)]
    words += [f"{word_text(word)} after sync" for word in ready.send_after_sync]
    return "  ".join([*parts, *words]).rstrip()


def event_text(event: Event) -> str:
    """An event in a few words."""
    if isinstance(event, Request):
        source = event.token.source if isinstance(event.token, Call) else "?"
        return f"{type(event.message).__name__} of {source}"
    if isinstance(event, Response):
        return f"{type(event.message).__name__} of {event.node_id}"
    if isinstance(event, RequestFailure):
        return f"no answer of {event.node_id}"
    return str(event) if len(str(event)) < 44 else type(event).__name__


def word_text(word: Send | Reply) -> str:
    """A word in a few words."""
    if isinstance(word, Send):
        return f"-> {type(word.message).__name__} to {word.node.id}"
    target = word.token.source if isinstance(word.token, Call) else "?"
    return f"-> {type(word.message).__name__} to {target}"
