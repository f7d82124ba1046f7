"""Blocks of producer ids."""

import pytest

from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.unit.controller.stage import Stage


@pytest.mark.parametrize(("broker", "epoch"), [(1, 0), (5, -1)])
def test_whoever_comes_with_an_old_epoch_is_refused(broker: int, epoch: int) -> None:
    stage = Stage(1)
    request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)
    with pytest.raises(BrokerError) as refused:
        stage.do(lambda controller, now: controller.allocate_producer_ids(request, now))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_producer_ids_come_in_blocks_that_never_overlap() -> None:
    stage = Stage(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=stage.image.brokers[1].epoch)
    blocks = [
        stage.do(lambda controller, now: controller.allocate_producer_ids(request, now)) for _ in range(2)
    ]
    assert [(each.producer_id_start, each.producer_id_len) for each in blocks] == [(0, 1000), (1000, 1000)]
    assert stage.image.next_producer_id == 2000
