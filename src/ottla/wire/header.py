"""What leads every request and response.

A request's header has version 2 when the API's own version is flexible, else 1; a response's has 1 or 0. ApiVersions
is the exception, see `Api.response_header_version`. (Header version 0 went with the last API that used it.)

H1  The client id has a two-byte length in both versions, so that a header can be read before its version is known.
"""

import struct

from ottla.wire.apis import APIS, NEVER
from ottla.wire.errors import ProtocolError
from ottla.wire.field import since
from ottla.wire.message import Message
from ottla.wire.primitive import Int16, Int32, NullableString
from ottla.wire.tags import BUDGET, read_unknown
from ottla.wire.varint import Buffer

_FIRST_FLEXIBLE = {api.key: api.first_flexible for api in APIS}
_unpack_start = struct.Struct(">hhih").unpack_from


class RequestHeader(Message, versions="1-2", flexible="2+"):
    """Leads a request: which API and version, the number its answer will bear, and who asks."""

    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: NullableString = since(0, flexible=False)


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """Leads a response: the number of the request it answers."""

    correlation_id: Int32


def read_request_header(buf: Buffer, pos: int, end: int) -> tuple[int, int, int, str | None, int]:
    """Read a header as (api key, version, correlation id, client id, position of the body).

    The header of an API we do not know is taken for version 1: there is no telling, and its body cannot be read
    anyway. Unknown tagged fields are checked and dropped.
    """
    try:
        api_key, version, correlation_id, size = _unpack_start(buf, pos)
        pos += 10
        if size >= 0:
            stop = pos + size
            client_id = buf[pos:stop].decode()
            pos = stop
        else:
            client_id = None
        if version >= _FIRST_FLEXIBLE.get(api_key, NEVER):
            if buf[pos]:
                _, pos, _ = read_unknown(buf, pos, end, BUDGET)
            else:
                pos += 1
    except (IndexError, struct.error, UnicodeDecodeError) as cause:
        raise ProtocolError(f"request header: {cause}") from None
    if pos > end:
        raise ProtocolError(f"request header ends {pos - end} bytes after its frame")
    return api_key, version, correlation_id, client_id, pos
