"""`ottla perf`: how fast a cluster is, from here."""

from ottla.cli.syntax.kinds import count, duration, rate, size
from ottla.cli.syntax.parser import Commands, Parser, command, group, naming
from ottla.cli.syntax.produce import add_codec


def add_perf(commands: Commands, name: str, help: str) -> None:
    """Add `ottla perf`."""
    actions = group(commands, name, help)

    this = command(
        actions,
        "produce",
        "write records as fast as they are taken, or at a rate, and measure throughput and latency",
        "ottla.cli.perf.producing:measure_producing",
        examples="  ottla perf produce bench --records 1000000 --size 1k\n"
        "  ottla perf produce bench --rate 5000 --acks all\n",
    )
    _topic(this)
    _records(this, 100_000)
    _sizes(this)
    this.add_argument("--rate", metavar="N", type=rate, help="at most so many records a second")
    this.add_argument(
        "--acks", choices=("0", "1", "all"), help="who confirms: nobody, the leader, or all in sync (all)"
    )
    add_codec(this)

    this = command(
        actions,
        "consume",
        "read records as fast as they come, and measure throughput",
        "ottla.cli.perf.consuming:measure_consuming",
    )
    _topic(this)
    _records(this, None)
    this.add_argument(
        "--from", metavar="PLACE", dest="begin", default="start", help="where to begin (%(default)s)"
    )
    naming(
        this.add_argument("-g", "--group", metavar="GROUP", help="read as a member of this group"), "group"
    )
    this.add_argument(
        "--idle",
        metavar="DURATION",
        type=duration,
        default=10_000,
        help="stop when nothing has come for so long (10s)",
    )

    this = command(
        actions,
        "latency",
        "write one record after the other, wait for each to come back, and measure how long that takes",
        "ottla.cli.perf.latency:measure_latency",
    )
    _topic(this)
    _records(this, 1000)
    _sizes(this)
    this.add_argument("--acks", choices=("1", "all"), help="who confirms: the leader, or all in sync (all)")


def _topic(this: Parser) -> None:
    naming(this.add_argument("topic", metavar="TOPIC", help="the topic"), "topic")


def _records(this: Parser, default: int | None) -> None:
    this.add_argument(
        "-n", "--records", metavar="N", type=count, default=default,
        help="how many records (%(default)s)" if default else "how many records (all that are there now)",
    )  # fmt: skip


def _sizes(this: Parser) -> None:
    this.add_argument(
        "-s", "--size", metavar="SIZE", type=size, default=100, help="bytes of a value: 100, 1k (%(default)s)"
    )
    this.add_argument(
        "--key-size", metavar="SIZE", type=size, default=0, help="bytes of a key, 0 for no key (%(default)s)"
    )
