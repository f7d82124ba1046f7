"""ApiVersions (18): what this broker speaks, and which features the cluster has finalized.

v3 and up introduce the client's software by name and version. v5 may name the cluster and node it wanted (KIP-1242),
and hears REBOOTSTRAP_REQUIRED when it has reached another. An unknown version is answered in v0.
"""

import re

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(
    request: ApiVersionsRequest, version: int, connection: Connection, broker: Broker
) -> ApiVersionsResponse:
    """Answer with the table of APIs and features."""
    if version >= 3:
        name, software = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(software)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        connection.session.software_name = name
        connection.session.software_version = software
    if version >= 5 and (
        (request.cluster_id is not None and request.cluster_id != broker.cluster_id)
        or (request.node_id >= 0 and request.node_id != broker.node_id)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return broker.api_versions.answer(broker.image, version)


API = Api(ApiVersionsRequest, ApiVersionsResponse, handle)
