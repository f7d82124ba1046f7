"""Fuzz the decoders: random bytes as any message at any version.

    python tests/fuzz/fuzz_wire.py [atheris options] [corpus]      (needs `pip install atheris`)

Under pytest, test_fuzz_wire.py gives the same target a fixed number of inputs.
"""

import contextlib
import sys

from ottla.wire.catalog import every_message
from ottla.wire.errors import ProtocolError
from ottla.wire.header import read_request_header

MESSAGES = every_message()


def one_input(data: bytes) -> None:
    """The first two bytes choose the message, the third its version, the rest is the message."""
    if len(data) < 3:
        return
    cls = MESSAGES[int.from_bytes(data[:2]) % len(MESSAGES)]
    version = cls.versions[data[2] % len(cls.versions)]
    body = bytearray(data[3:])
    with contextlib.suppress(ProtocolError):
        read_request_header(body, 0, len(body))
    try:
        message, pos = cls.decoder(version)(body, 0, len(body))
    except ProtocolError:
        return
    if pos > len(body):
        raise AssertionError(f"{cls.__name__} v{version} read past its end")
    # Bytes have many spellings (long varints, defaults spelled out), messages have one: it must be stable.
    spelled = message.encode(version)
    again = cls.decode(spelled, version).encode(version)
    if again != spelled:
        raise AssertionError(f"{cls.__name__} v{version} changed between two encodings")


def main() -> None:
    import atheris

    for cls in MESSAGES:
        for version in cls.versions:
            atheris.instrument_func(cls.decoder(version))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
