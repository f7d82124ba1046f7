"""UpdateFeatures (57): finalize levels of features for the whole cluster.

v0 allows downgrades with a flag, v1 names the kind of change (upgrade, safe or unsafe downgrade) and can validate only;
v2 answers for the request as a whole, since one refused level refuses all.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def handle(request: UpdateFeaturesRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller."""

    def finish(outcome: UpdateFeaturesResponse | BrokerError) -> UpdateFeaturesResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        return UpdateFeaturesResponse(error_code=outcome.code, error_message=outcome.message)

    return forward(
        broker,
        lambda controller, now: controller.update_features(request, version, now),
        finish,
        request.timeout_ms,
    )


API = Api(UpdateFeaturesRequest, UpdateFeaturesResponse, handle)
