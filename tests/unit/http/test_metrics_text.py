from ottla.http.metrics.text import counter, gauge, histogram, page_pieces


def page_text(families):
    return b"".join(page_pieces(families))


def test_a_family_is_written_with_help_type_and_samples():
    family = counter("requests_total", "Requests.").add(3, api="Produce").add(4)
    assert page_text([family]).decode() == (
        "# HELP requests_total Requests.\n"
        "# TYPE requests_total counter\n"
        'requests_total{api="Produce"} 3\n'
        "requests_total 4\n"
    )


def test_a_family_without_samples_is_left_out():
    assert page_text([gauge("nothing", "Nothing."), gauge("one", "One.").add(1)]).startswith(b"# HELP one")


def test_labels_are_escaped():
    family = gauge("g", "G.").add(1, topic='a"b\\c\nd')
    assert page_text([family]).splitlines()[-1] == b'g{topic="a\\"b\\\\c\\nd"} 1'


def test_numbers_that_are_no_numbers():
    family = gauge("g", "G.").add(float("nan")).add(float("inf")).add(float("-inf")).add(0.5)
    assert page_text([family]).splitlines()[2:] == [b"g NaN", b"g +Inf", b"g -Inf", b"g 0.5"]


def test_parts_of_a_histogram_stand_behind_its_name():
    family = histogram("h", "H.").add(1, "_bucket", le="+Inf").add(0.25, "_sum")
    assert page_text([family]).splitlines()[1:] == [
        b"# TYPE h histogram",
        b'h_bucket{le="+Inf"} 1',
        b"h_sum 0.25",
    ]
