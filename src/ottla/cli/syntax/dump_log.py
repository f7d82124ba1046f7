"""`ottla dump-log`: what the files of a log say."""

from ottla.cli.syntax.kinds import count
from ottla.cli.syntax.parser import Commands, add_output_option, command, naming


def add_dump_log(commands: Commands, name: str, help: str) -> None:
    """Add `ottla dump-log`."""
    this = command(
        commands,
        name,
        help,
        "ottla.cli.dump.command:dump_log",
        more="A running broker is not disturbed. Exits with 1 when something is wrong with a file.",
        examples="  ottla dump-log ottla-data/orders-0\n"
        "  ottla dump-log ottla-data/orders-0/00000000000000000000.log --records\n"
        "  ottla dump-log ottla-data/__cluster_metadata-0 --decode metadata -o json\n",
        cluster=False,
    )
    naming(
        this.add_argument(
            "paths", metavar="PATH", nargs="+",
            help="a file (.log, .index, .timeindex, .txnindex, .snapshot, .checkpoint, ...) or the directory of a log",
        ),
        "file",
    )  # fmt: skip
    this.add_argument("-r", "--records", action="store_true", help="every record, not batches only")
    this.add_argument("--values", action="store_true", help="every record with its key, value and headers")
    this.add_argument(
        "-d", "--decode", choices=("auto", "none", "groups", "transactions", "share", "metadata"), default="auto",
        help="what the records mean: by the name of the directory, nothing, or of which internal topic (%(default)s)",
    )  # fmt: skip
    this.add_argument(
        "--verify", action="store_true", help="only say what is wrong: checksums, offsets, indexes"
    )
    this.add_argument(
        "-n", "--count", metavar="N", type=count, help="stop after so many batches or entries of a file"
    )
    add_output_option(this)
