"""Descriptors of files are limited, and files go on as if they were not."""

import errno
import os
import resource
import threading

import pytest

from ottla.world.disk import RealDisk, pin_all, unpin_all


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def disk():
    return RealDisk()


@pytest.fixture
def files(disk, tmp_path):
    made = [disk.open(str(tmp_path / f"{number}"), size=0) for number in range(50)]
    yield made
    for file in made:
        file.close()


def test_no_more_are_open_than_may_be_and_all_are_written_and_read(disk, files):
    disk.limit_open(lambda: 5)
    before = open_descriptors()
    for round in range(3):
        for number, file in enumerate(files):
            file.append(b"%d-%d;" % (number, round))
            assert open_descriptors() - before <= 5
    for number, file in enumerate(files):
        assert file.read(0, 100) == b"%d-0;%d-1;%d-2;" % (number, number, number)
        assert open_descriptors() - before <= 5


def test_one_that_grows_stays_open(disk, files):
    disk.limit_open(lambda: 5)
    busy = files[0]
    fds = set()
    for file in files[1:]:
        busy.append(b".")
        fds.add(busy._fd)
        file.read(0, 1)
    assert len(fds) == 1


def test_one_that_a_thread_syncs_stays_open(disk, files):
    disk.limit_open(lambda: 5)
    pin_all(files[:4])
    fds = [file._fd for file in files[:4]]
    for file in files[4:]:
        file.append(b".")
    assert [file._fd for file in files[:4]] == fds
    unpin_all(files[:4])


def test_a_pin_for_which_there_is_no_room_is_refused_and_the_loop_goes_on(disk, files):
    """As a sync that could not begin: it is tried again when another is done."""
    disk.limit_open(lambda: 5)
    with pytest.raises(OSError) as error:
        pin_all(files)
    assert error.value.errno == errno.EMFILE
    assert not any(file.pins for file in files)
    pin_all(files[:5])
    files[5].append(b".")  # an append is no sync, and a thread may take long
    files[6].append(b".")
    assert sum(file._fd >= 0 for file in files) == 6
    with pytest.raises(OSError):
        disk.hold_dir(os.path.dirname(files[0].path))
    unpin_all(files[:5])
    files[7].append(b".")
    assert sum(file._fd >= 0 for file in files) == 5


def test_directories_that_are_held_count(disk, files):
    disk.limit_open(lambda: 5)
    path = os.path.dirname(files[0].path)
    held = [disk.hold_dir(path) for _ in range(5)]
    with pytest.raises(OSError):
        disk.hold_dir(path)
    disk.sync_dir(path)  # for a checkpoint: open for a moment
    for each in held:
        each.close()
    pin_all(files[:5])
    unpin_all(files[:5])


def test_files_make_room_where_the_process_has_no_descriptor_left(disk, files, tmp_path):
    for file in files:
        file.append(b".")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard))
    taken = []
    try:
        while True:  # where numbers are free below the limit
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    try:
        disk.write_atomic(str(tmp_path / "checkpoint"), b"1")
        assert disk.read_bytes(str(tmp_path / "checkpoint")) == b"1"
        disk.open(str(tmp_path / "new")).append(b".")
        assert "new" in disk.list(str(tmp_path))
        assert "new" in disk.list_sizes(str(tmp_path))
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_fewer_may_be_open_than_are_the_others_close(disk, files):
    allowed = [50]
    fit = disk.limit_open(lambda: allowed[0])
    for file in files:
        file.append(b".")
    allowed[0] = 7
    fit()
    assert sum(file._fd >= 0 for file in files) == 7


def test_another_thread_closes_nothing(disk, files):
    """The loop may be about to write to it."""
    disk.limit_open(lambda: 5)
    for file in files[:5]:
        file.append(b".")
    thread = threading.Thread(target=lambda: [file.read(0, 1) for file in files[5:10]])
    thread.start()
    thread.join()
    assert all(file._fd >= 0 for file in files[:10])
