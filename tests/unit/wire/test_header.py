"""Request headers as they come from the network."""

import pytest

from ottla.wire.errors import ProtocolError
from ottla.wire.header import RequestHeader, ResponseHeader, read_request_header


def header(api_key: int, version: int, client_id: str | None, header_version: int) -> bytes:
    return RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=77, client_id=client_id
    ).encode(header_version)


@pytest.mark.parametrize("client_id", [None, "", "console-producer", "größe"])
@pytest.mark.parametrize(
    ("api_key", "version", "header_version"), [(0, 8, 1), (0, 9, 2), (18, 99, 2), (17, 1, 1)]
)
def test_a_header_is_read_wherever_it_lies(
    client_id: str | None, api_key: int, version: int, header_version: int
) -> None:
    data = header(api_key, version, client_id, header_version)
    buf = bytearray(b"before" + data + b"the body")
    end = len(buf)
    found = read_request_header(buf, 6, end)
    assert found == (api_key, version, 77, client_id, 6 + len(data))
    decoded, pos = RequestHeader.decoder(header_version)(buf, 6, end)
    assert (decoded.client_id, pos) == (client_id, 6 + len(data))


def test_the_client_id_keeps_its_old_length_in_version_2() -> None:
    assert header(0, 9, "ab", 2) == bytes.fromhex("0000 0009 0000004d 0002 6162 00")


def test_tagged_fields_of_a_header_are_passed_over() -> None:
    data = header(0, 9, "ab", 2)[:-1] + b"\x02\x00\x01x\x05\x02yz"
    assert read_request_header(data, 0, len(data))[4] == len(data)


def test_an_unknown_api_has_a_header_without_tags() -> None:
    data = header(999, 3, "ab", 1)
    assert read_request_header(data, 0, len(data)) == (999, 3, 77, "ab", len(data))


def test_a_header_cut_anywhere_is_refused() -> None:
    data = header(0, 9, "console-producer", 2)
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            read_request_header(data[:size], 0, size)
        with pytest.raises(ProtocolError):
            read_request_header(data, 0, size)


def test_a_client_id_that_is_not_text_is_refused() -> None:
    data = header(0, 8, "ab", 1).replace(b"ab", b"\xff\xff")
    with pytest.raises(ProtocolError):
        read_request_header(data, 0, len(data))


def test_response_headers() -> None:
    assert ResponseHeader(correlation_id=5).encode(0) == b"\0\0\0\5"
    assert ResponseHeader(correlation_id=5).encode(1) == b"\0\0\0\5\0"
