"""`ottla consume`: records of topics to stdout."""

from ottla.cli.syntax.kinds import count, duration, partitions
from ottla.cli.syntax.parser import Commands, Parser, command, naming

EXAMPLES = r"""  ottla consume hello -e
  ottla consume orders --from @-1h --print partition,offset,key,value
  ottla consume orders -f '%t[%p]@%o %d{iso} %k: %v\n' -n 10
  ottla consume orders --group billing
  ottla consume --regex 'orders-.*' -f json

templates:
  %t topic     %p partition  %o offset   %e leader epoch  %i number of the record
  %k key       %K its length %v value    %V its length    %d timestamp, in ms
  %h headers   %H how many   %% percent  \n \t \r \\ \xNN
  %v{hex} %v{base64} %v{json} %v{unpack[>iq]}   %K{big32} %p{hex8} %o{little64}
  %d{iso} %d{strftime[%F %T]}   %h{ %k=%v }
  kcat's %s %S %T %R are understood as well

places:
  start  end  stored (by the group)  42  +10 (after the start)  -10 (before the end)
  @2026-10-09  @2026-10-09T08:00:00Z  @1760000000000  @-1h (ago)
"""


def add_consume(commands: Commands, name: str, help: str) -> None:
    """Add `ottla consume`."""
    this = command(
        commands,
        name,
        help,
        "ottla.cli.consume.command:consume",
        more="It follows the topics until it is interrupted, unless something ends it.",
        examples=EXAMPLES,
    )
    naming(
        this.add_argument("topics", metavar="TOPIC", nargs="+", help="a topic, or with --regex a pattern"),
        "topic",
    )
    this.add_argument("-r", "--regex", action="store_true", help="read all topics whose whole name matches")
    _add_where(this)
    _add_end(this)
    _add_group(this)
    _add_form(this)


def _add_where(this: Parser) -> None:
    this.add_argument(
        "-p", "--partitions", "--partition", metavar="0,2-4", type=partitions, help="only these partitions"
    )
    this.add_argument(
        "--from",
        metavar="PLACE",
        dest="begin",
        help="where to begin (start; in a group what it has stored, else start)",
    )
    this.add_argument("--to", metavar="PLACE", dest="until", help="where to stop, this place left out")


def _add_end(this: Parser) -> None:
    this.add_argument(
        "-e", "--exit", action="store_true", help="stop at what is the end now; the same as --to end"
    )
    this.add_argument("-n", "--count", metavar="N", type=count, help="stop after so many records")
    this.add_argument(
        "--idle", metavar="DURATION", type=duration, help="stop when nothing has come for so long: 500ms, 10s"
    )


def _add_group(this: Parser) -> None:
    naming(
        this.add_argument(
            "-g",
            "--group",
            metavar="GROUP",
            help="read as a member of this group, and commit what was printed",
        ),
        "group",
    )
    this.add_argument("--no-commit", action="store_true", help="in a group, commit nothing")
    this.add_argument(
        "--read-committed", action="store_true", help="leave out what is not, or not yet, committed"
    )


def _add_form(this: Parser) -> None:
    this.add_argument(
        "-f", "--format", metavar="FORMAT",
        help="how to print: text, json, hex, base64, or a template as below (text)",
    )  # fmt: skip
    this.add_argument(
        "--print", metavar="FIELD,...", dest="fields",
        help="what to print: topic, partition, offset, timestamp, key, value, headers, epoch (value)",
    )  # fmt: skip
    this.add_argument(
        "-K", "--key-separator", metavar="TEXT", help="print key and value with this between them"
    )
    this.add_argument(
        "-S", "--separator", metavar="TEXT", default="\\t", help="what stands between fields (a tab)"
    )
    this.add_argument(
        "-D", "--delimiter", metavar="TEXT", default="\\n", help="what ends a record (a line break)"
    )
    this.add_argument("--null", metavar="TEXT", default="", help="what stands for null (nothing)")
