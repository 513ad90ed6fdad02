"""
InitProducerId.
"""

from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

from kgateway.handlers.init_producer_id import init_producer_id
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetch.rigged_broker import rigged
from tests.serving import Denying, Serving

VERSIONS = range(6)


class InitProducerIdTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving, self.broker = rigged()
        self.broker.make("orders")
        self.broker.make("returns")

    def ask(self, version: int = 5, transactional_id: str | None = None, **more: Any) -> InitProducerIdResponse:
        given: dict[str, Any] = {"transaction_timeout_ms": 60_000}
        request = InitProducerIdRequest(transactional_id=transactional_id, **given | more)
        response: InitProducerIdResponse = self.successResultOf(self.serving.ask(init_producer_id, request, version))
        return response

    def refused(self, version: int = 5, transactional_id: str | None = None, **more: Any) -> int:
        """
        The error of a response, which has neither id nor epoch.
        """
        response = self.ask(version, transactional_id, **more)
        self.assertEqual((-1, -1), (response.producer_id, response.producer_epoch), version)
        self.assertEqual([response.error_code], [one.error.code for one in self.serving.context.refusals or ()])
        return response.error_code

    def deny(self, *allowed: str) -> None:
        """
        Deny everything except writing these topics.
        """
        self.serving.parts.authorizer = Denying(
            lambda operation, _, name: operation is not Operation.WRITE or name not in allowed
        )

    def test_stable_versions_of_kafka_4_3_are_served(self) -> None:
        self.assertEqual(VERSIONS, init_producer_id.versions)

    def test_each_producer_has_its_own_id(self) -> None:
        """
        It begins in the first epoch.
        """
        responses = [self.ask(version) for version in VERSIONS]
        self.assertEqual({(0, 0)}, {(response.error_code, response.producer_epoch) for response in responses})
        self.assertEqual(len(VERSIONS), len({response.producer_id for response in responses}))

    def test_a_producer_with_an_id_gets_another(self) -> None:
        for version in range(3, 6):
            before = self.ask(version).producer_id
            after = self.ask(version, producer_id=before, producer_epoch=4)
            self.assertEqual((0, 0), (after.error_code, after.producer_epoch), version)
            self.assertNotEqual(before, after.producer_id, version)

    def test_id_and_epoch_must_come_together(self) -> None:
        for version in range(3, 6):
            self.assertEqual(ErrorCode.INVALID_REQUEST, self.refused(version, producer_id=7), version)
            self.assertEqual(ErrorCode.INVALID_REQUEST, self.refused(version, producer_epoch=7), version)

    def test_the_response_waits_for_the_broker(self) -> None:
        promised: Deferred[int] = Deferred()
        self.patch(self.broker, "new_producer_id", lambda: promised)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        result = self.serving.ask(init_producer_id, request, 5)
        self.assertNoResult(result)
        promised.callback(77)
        self.assertEqual(77, self.successResultOf(result).producer_id)

    def test_errors_of_the_broker_are_returned(self) -> None:
        """
        It may have no id now.
        """
        error = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not yet")
        self.patch(self.broker, "new_producer_id", lambda: fail(error))
        self.assertEqual(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, self.refused())

    def test_permission_is_needed(self) -> None:
        """
        The client must be allowed to write idempotently to the cluster, or to write any topic.
        """
        self.deny()
        for version in VERSIONS:
            self.assertEqual(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, self.refused(version), version)

    def test_permission_on_any_topic_is_enough(self) -> None:
        self.deny("returns")
        self.assertEqual(ErrorCode.NONE, self.ask().error_code)

    def test_permission_on_the_cluster_is_enough(self) -> None:
        authorizer = self.serving.parts.authorizer = Denying(lambda *_: False)
        self.ask()
        self.assertEqual([(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)], [one[:2] for one in authorizer.asked])

    def test_the_coordinator_identifies_transactional_producers(self) -> None:
        """
        It returns the same id with a later epoch, after the permission check.
        """
        self.serving = Serving()
        told = [self.ask(version, "tx") for version in VERSIONS]
        self.assertEqual([0] * len(told), [one.error_code for one in told])
        self.assertEqual(1, len({one.producer_id for one in told}))
        self.assertEqual(list(range(len(told))), [one.producer_epoch for one in told])
        last = told[-1]
        again = self.ask(5, "tx", producer_id=last.producer_id, producer_epoch=last.producer_epoch)
        self.assertEqual((last.producer_id, last.producer_epoch + 1), (again.producer_id, again.producer_epoch))
        for version in VERSIONS:
            self.assertEqual(ErrorCode.INVALID_REQUEST, self.refused(version, ""), version)
        fenced = {"producer_id": last.producer_id, "producer_epoch": 0}
        self.assertEqual(ErrorCode.INVALID_PRODUCER_EPOCH, self.refused(3, "tx", **fenced))
        self.assertEqual(ErrorCode.PRODUCER_FENCED, self.refused(4, "tx", **fenced))
        self.assertEqual(ErrorCode.INVALID_TRANSACTION_TIMEOUT, self.refused(5, "tx", transaction_timeout_ms=1 << 30))
        self.deny("orders")
        for version in VERSIONS:
            for transactional_id in ("tx", ""):
                code = self.refused(version, transactional_id)
                self.assertEqual(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, code, version)
