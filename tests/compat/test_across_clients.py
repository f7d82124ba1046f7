"""What any client wrote, every other reads, whatever the codec."""

import pytest

from tests.compat.absence import need
from tests.compat.clients import CLIENTS, CODECS, Client, Sample

RECORDS = tuple(Sample(key=b"k%d" % (n % 5), value=b"value %d" % n) for n in range(50))


@pytest.mark.parametrize("writer", CLIENTS, ids=lambda client: client.name)
def test_written_by_one_read_by_all(writer: Client, bootstrap: str, topic: str) -> None:
    need(writer)
    for codec in CODECS:
        writer.produce(bootstrap, topic, RECORDS, codec=codec)
    wanted = [(n, sample.key, sample.value) for n, sample in enumerate(RECORDS * len(CODECS))]
    for reader in CLIENTS:
        if reader.absent() is None:
            seen = reader.read(bootstrap, topic, len(wanted))
            assert [(each.offset, each.key, each.value) for each in seen] == wanted, reader.name
