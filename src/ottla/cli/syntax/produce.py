"""`ottla produce`: records from the command line, from files or from stdin into a topic."""

from ottla.cli.syntax.kinds import natural, rate
from ottla.cli.syntax.parser import Commands, Parser, command, naming

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
EXAMPLES = r"""  ottla produce hello 'Hello from Ottla'
  ottla produce orders -K : < keys-and-values.txt
  ottla consume orders -f json -e | ottla produce copies -f json
  ottla produce orders -f '%k %v{hex}\n' --file dump.txt -z zstd
"""


def add_produce(commands: Commands, name: str, help: str) -> None:
    """Add `ottla produce`."""
    this = command(
        commands,
        name,
        help,
        "ottla.cli.produce.command:produce",
        more="Each line of stdin is one, unless values or files are given. With -X transactional.id=... they are all "
        "one transaction.",
        examples=EXAMPLES,
    )
    naming(this.add_argument("topic", metavar="TOPIC", help="the topic"), "topic")
    this.add_argument(
        "values", metavar="VALUE", nargs="*", default=[], help="a value; stdin is not read then"
    )
    _add_input(this)
    _add_record(this)
    this.add_argument(
        "--acks", choices=("0", "1", "all"), help="who confirms: nobody, the leader, or all in sync (all)"
    )
    add_codec(this)
    this.add_argument("--rate", metavar="N", type=rate, help="at most so many records a second")
    this.add_argument(
        "-v", "--verbose", action="store_true", help="print where each record went, in the form of -o"
    )


def add_codec(this: Parser) -> None:
    """Add the choice of compression."""
    this.add_argument("-z", "--compression", choices=CODECS, help="how batches are compressed (none)")


def _add_input(this: Parser) -> None:
    file = this.add_argument(
        "--file", metavar="FILE", action="append", default=[], dest="files",
        help="read from this file instead of stdin; may be repeated",
    )  # fmt: skip
    naming(file, "file")
    this.add_argument("--whole", action="store_true", help="each file, or all of stdin, is one record")
    this.add_argument(
        "-f", "--format", metavar="FORMAT", default="text",
        help="how records are written: text, json, hex, base64, or a template such as '%%k\\t%%v\\n' (%(default)s)",
    )  # fmt: skip
    this.add_argument(
        "-D", "--delimiter", metavar="TEXT", default="\\n", help="what ends a record (a line break)"
    )
    this.add_argument("-K", "--key-separator", metavar="TEXT", help="what stands between key and value")
    this.add_argument(
        "-Z", "--null", action="store_true", help="an empty value is null, which deletes in compacted topics"
    )
    this.add_argument(
        "--keep-partitions", action="store_true", help="records go to the partition that the input names"
    )


def _add_record(this: Parser) -> None:
    this.add_argument("-k", "--key", metavar="KEY", help="the key of records that have none of their own")
    this.add_argument(
        "-H", "--header", metavar="NAME=VALUE", action="append", default=[], dest="headers",
        help="a header for every record; may be repeated",
    )  # fmt: skip
    this.add_argument(
        "-p", "--partition", "--partitions", metavar="N", type=natural, help="the partition (by key, or in turns)"
    )  # fmt: skip
    this.add_argument(
        "--timestamp", metavar="TIME", help="the time of records that have none of their own (now)"
    )
