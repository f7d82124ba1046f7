"""kcat, Debian's packaging of librdkafka as a program: text lines in, any record out."""

import re
import shutil
import subprocess
from collections.abc import Sequence

from tests.compat.clients.client import READ_SECONDS_MAX, Headers, Sample, Seen

# Offset, timestamp, lengths (-1 is null) and headers on one line, then the key and the value as raw bytes.
_FORMAT = r"%o %T %K %S [%h]\n%k%s\n"
_HEAD = re.compile(rb"(\d+) (-?\d+) (-?\d+) (-?\d+) \[(.*)\]\n")


class Kcat:
    name = "kcat"
    text_only = True

    def absent(self) -> str | None:
        return None if shutil.which("kcat") else "kcat is not installed (Debian: apt-get install kcat)"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        samples: Sequence[Sample],
        *,
        partition: int = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        lines = []
        for sample in samples:
            assert (sample.headers, sample.timestamp_ms) == ((), None), "kcat sets these for all or for none"
            lines.append((sample.key or b"") + b"|" + (sample.value or b"") + b"\n")
        arguments = ["-P", "-t", topic, "-p", str(partition), "-K", "|", "-Z"]
        arguments += ["-X", f"compression.codec={codec}", "-X", f"acks={acks}"]
        arguments += [
            "-X",
            f"enable.idempotence={str(idempotent).lower()}",
            "-X",
            "message.max.bytes=2000000",
        ]
        self.run(bootstrap, *arguments, stdin=b"".join(lines))

    def read(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        start_offset: int = 0,
        isolation: str = "read_uncommitted",
    ) -> list[Seen]:
        arguments = ["-C", "-t", topic, "-p", str(partition), "-o", str(start_offset), "-c", str(count), "-q"]
        arguments += ["-f", _FORMAT, "-X", f"isolation.level={isolation}"]
        return _parse(self.run(bootstrap, *arguments))

    def run(self, bootstrap: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run kcat against a broker, and return its output."""
        command = ["kcat", "-b", bootstrap, *arguments]
        done = subprocess.run(
            command, check=False, input=stdin, capture_output=True, timeout=READ_SECONDS_MAX
        )
        assert done.returncode == 0, (
            f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode()}"
        )
        return done.stdout


def _parse(output: bytes) -> list[Seen]:
    seen, position = [], 0
    while position < len(output):
        head = _HEAD.match(output, position)
        assert head is not None, (
            f"kcat printed something else at byte {position}: {output[position : position + 80]!r}"
        )
        offset, timestamp_ms, key_size, value_size = (int(head[n]) for n in range(1, 5))
        position = head.end()
        key, position = _field(output, position, key_size)
        value, position = _field(output, position, value_size)
        seen.append(Seen(offset, timestamp_ms, key, value, _headers(head[5])))
        position += 1  # the line feed that ends the record
    return seen


def _field(output: bytes, position: int, size: int) -> tuple[bytes | None, int]:
    if size < 0:
        return None, position
    return output[position : position + size], position + size


def _headers(text: bytes) -> Headers:
    pairs = []
    for pair in filter(None, text.split(b",")):
        name, _, value = pair.partition(b"=")
        pairs.append((name.decode(), None if value == b"NULL" else value))
    return tuple(pairs)
