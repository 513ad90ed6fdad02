"""
UnregisterBroker.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.handlers.unregister_broker import unregister_broker
from kgateway.messages.unregister_broker import UnregisterBrokerRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.cluster.clusters import NEAR, OWN, refusal, serving_among


class UnregisterBrokerTests(SynchronousTestCase):
    def refused(self, broker_id: int) -> KafkaError:
        serving, _ = serving_among(NEAR)
        return refusal(serving.ask, unregister_broker, UnregisterBrokerRequest(broker_id=broker_id), 0)

    def test_unknown_brokers_are_refused(self) -> None:
        for broker_id in (7, -1):
            error = self.refused(broker_id)
            assert error.code is ErrorCode.BROKER_ID_NOT_REGISTERED
            assert error.message == f"Broker ID {broker_id} is not currently registered"

    def test_running_gateways_are_refused(self) -> None:
        """
        They are in the cluster.
        """
        for broker_id in (OWN, NEAR.id):
            error = self.refused(broker_id)
            assert (error.code, error.message) == (
                ErrorCode.INVALID_REQUEST,
                f"gateway {broker_id} is running; stop it to remove it from the cluster",
            )
