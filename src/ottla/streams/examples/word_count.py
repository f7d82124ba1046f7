"""Count words, live: lines are written to a topic, Spark counts their words exactly once, and the counts are shown.

python -m ottla.streams.examples.word_count
"""

import argparse
import sys
import tempfile
from itertools import count, cycle

from ottla.client.blocking import Admin, Producer
from ottla.client.errors import ClientError
from ottla.streams import App
from ottla.world.clock import RealClock

LINES, COUNTS = "word-count-lines", "word-count-counts"
TEXT = """\
a river of records flows past the mill and the mill grinds
the mill keeps count and forgets nothing of what flows past
what is counted once is counted once though the mill should stop
and when the mill starts again the river has waited for it
"""
ROUND_SECONDS, LINES_A_ROUND, WORDS_SHOWN = 0.5, 25, 12


def topology(bootstrap: str, checkpoint: str, counts: dict[str, int]) -> App:
    """Say what is to be done: four lines, of which the last shows it."""
    app = App("word-count-example", bootstrap, checkpoint=checkpoint)
    words = app.stream(LINES).flat_map_values(lambda line: line.lower().split())
    table = words.group_by(lambda word: word).count(name="counts")
    table.to(COUNTS)
    table.to_stream().for_each(counts.__setitem__)
    return app


def shown(counts: dict[str, int], written: int) -> str:
    """Return the most frequent words, a bar for each."""
    most = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:WORDS_SHOWN]
    longest = max((number for _, number in most), default=1)
    rows = [f"{word:>8}  {number:>8,}  {'█' * (number * 40 // longest)}" for word, number in most]
    return "\n".join([f"{written:,} lines written, {sum(counts.values()):,} words counted", *rows])


class Picture:
    """What is shown, over and over: in its place on a terminal, every few seconds elsewhere."""

    def __init__(self) -> None:
        self._height = 0
        self._rounds = count()

    def show(self, text: str, status: str) -> None:
        """Show it."""
        if sys.stdout.isatty():
            back = f"\x1b[{self._height}F\x1b[J" if self._height else ""
            sys.stdout.write(f"{back}{text}\n\n{status}\n")
            self._height = text.count("\n") + 3
        elif next(self._rounds) % 10 == 0:
            sys.stdout.write(f"{status}\n{text}\n")
        sys.stdout.flush()


def main(arguments: list[str] | None = None) -> None:
    """Write lines and count their words until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m ottla.streams.examples.word_count", description=__doc__)
    parser.add_argument("--bootstrap-server", default="localhost:9092", help="where a broker is")
    parser.add_argument("--words", type=int, default=0, help="stop when so many are counted; 0 for never")
    options = parser.parse_args(arguments)
    try:
        with Admin(options.bootstrap_server) as admin:
            if LINES not in admin.topics.list():
                admin.topics.create(LINES, partitions=2)
    except ClientError as error:
        sys.exit(f"error: {error}")
    sys.stdout.write("starting Spark, which takes some seconds\n")
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="word-count-", ignore_cleanup_errors=True) as checkpoint:
        running = topology(options.bootstrap_server, checkpoint, counts).start(block=False)
        try:
            with Producer(options.bootstrap_server) as producer:
                _feed(producer, running, counts, options.words)
        except KeyboardInterrupt:
            sys.stdout.write("\nstopping\n")
        finally:
            running.stop()


def _feed(producer: Producer, running: object, counts: dict[str, int], enough: int) -> None:
    from ottla.streams.running import Running

    assert isinstance(running, Running)
    lines, picture, written = cycle(TEXT.splitlines()), Picture(), 0
    clock = RealClock()
    while not enough or sum(counts.values()) < enough:
        until = clock.monotonic() + ROUND_SECONDS
        for _ in range(LINES_A_ROUND):
            producer.send(LINES, next(lines).encode())
        producer.flush()
        written += LINES_A_ROUND
        if running.wait(max(until - clock.monotonic(), 0.0)):
            return
        picture.show(shown(dict(counts), written), running.status)


if __name__ == "__main__":
    main()
