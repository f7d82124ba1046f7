"""Whether the files of a stopped broker are sound, judged by their bytes alone."""

from pathlib import Path

from ottla.wire.batch import BATCH_HEADER, BATCH_HEADER_SIZE, crc_ok


def check_batches(log_dir: Path) -> int:
    """Walk every segment under a log directory; each must be whole batches with right CRCs. Returns how many."""
    count = 0
    for partition in sorted(log_dir.glob("*-[0-9]*")):
        end_offset = None
        for path in sorted(partition.glob("*.log")):
            data = path.read_bytes()
            base_offset = int(path.stem)
            assert end_offset is None or base_offset == end_offset, f"{path} does not follow its predecessor"
            end_offset = base_offset
            position = 0
            while position < len(data):
                assert len(data) - position >= BATCH_HEADER_SIZE, f"{path} ends within a header at {position}"
                header = BATCH_HEADER.unpack_from(data, position)
                size = header[1] + 12
                assert 0 < size <= len(data) - position, f"{path} ends within a batch at {position}"
                assert crc_ok(data, position, size), f"{path} has a bad CRC at {position}"
                assert header[0] == end_offset, f"{path} goes from offset {end_offset} to {header[0]}"
                end_offset = header[0] + header[6] + 1
                position += size
                count += 1
    return count
