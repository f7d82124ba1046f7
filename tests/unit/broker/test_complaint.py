"""A flood of complaints is told in one line."""

from ottla.broker.complaint import Complaints


def test_ten_a_minute_and_the_rest_as_a_number():
    lines, now = [], [0.0]
    complaints = Complaints(lines.append, lambda: now[0])
    for number in range(1000):
        complaints(f"bad frame {number}")
    assert lines == [f"bad frame {number}" for number in range(10)]
    now[0] = 61.0
    complaints("again")
    assert lines[10:] == ["990 more complaints about clients were not printed", "again"]
    assert complaints.total == 1001
