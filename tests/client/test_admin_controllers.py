"""The admin client speaking to controllers in place of brokers."""

from collections.abc import Callable

import pytest

from ottla.client.admin import Admin, Resource
from ottla.client.errors import ClientError, NoBroker, Unsupported
from tests.peers.server import Server


def test_controllers_answer_for_themselves(server: Server, run: Callable[..., None]) -> None:
    address = f"127.0.0.1:{server.controller_port}"

    async def main() -> None:
        async with Admin(bootstrap_controllers=address) as admin:
            described = await admin.cluster.describe()
            assert (described.id, described.controller) == (server.cluster_id, 1)
            assert [(each.id, each.port) for each in described.brokers] == [(1, server.controller_port)]
            assert (await admin.cluster.quorum()).leader == 1
            assert (await admin.features.describe()).finalized["metadata.version"].highest > 0
            node = Resource.broker(1)
            assert (await admin.configs.describe(node, names=["node.id"]))[node]["node.id"].value == "1"
            await admin.configs.alter({node: {"log.cleaner.threads": 1}}, validate_only=True)
            with pytest.raises(Unsupported):
                await admin.topics.list()

    run(main())


def test_a_broker_is_no_controller(server: Server, run: Callable[..., None]) -> None:
    async def main() -> None:
        with pytest.raises(ClientError) as caught:
            async with Admin(
                bootstrap_controllers=server.bootstrap, default_api_timeout_ms=500, request_timeout_ms=500
            ):
                pass
        assert not isinstance(caught.value, NoBroker), "it answered"

    run(main())
