"""
InitProducerId.
"""

from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

from handlers.init_producer_id import init_producer_id
from kgateway.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetching.rigged import rigged
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
        The error, with which there is neither id nor epoch.
        """
        response = self.ask(version, transactional_id, **more)
        self.assertEqual((-1, -1), (response.producer_id, response.producer_epoch), version)
        self.assertEqual([response.error_code], [one.error.code for one in self.serving.context.refusals or ()])
        return response.error_code

    def deny(self, *allowed: str) -> None:
        """
        Deny all but to write these topics.
        """
        self.serving.parts.authorizer = Denying(
            lambda operation, _, name: operation is not Operation.WRITE or name not in allowed
        )

    def test_versions(self) -> None:
        """
        The stable versions of Kafka 4.3 are served.
        """
        self.assertEqual(VERSIONS, init_producer_id.versions)

    def test_fresh(self) -> None:
        """
        Each producer gets an id of its own, and the first epoch.
        """
        responses = [self.ask(version) for version in VERSIONS]
        self.assertEqual({(0, 0)}, {(response.error_code, response.producer_epoch) for response in responses})
        self.assertEqual(len(VERSIONS), len({response.producer_id for response in responses}))

    def test_again(self) -> None:
        """
        A producer that had an id gets another one.
        """
        for version in range(3, 6):
            before = self.ask(version).producer_id
            after = self.ask(version, producer_id=before, producer_epoch=4)
            self.assertEqual((0, 0), (after.error_code, after.producer_epoch), version)
            self.assertNotEqual(before, after.producer_id, version)

    def test_half_an_identity(self) -> None:
        """
        A producer names id and epoch, or neither.
        """
        for version in range(3, 6):
            self.assertEqual(ErrorCode.INVALID_REQUEST, self.refused(version, producer_id=7), version)
            self.assertEqual(ErrorCode.INVALID_REQUEST, self.refused(version, producer_epoch=7), version)

    def test_waits(self) -> None:
        """
        The answer waits for the broker.
        """
        promised: Deferred[int] = Deferred()
        self.patch(self.broker, "new_producer_id", lambda: promised)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        result = self.serving.ask(init_producer_id, request, 5)
        self.assertNoResult(result)
        promised.callback(77)
        self.assertEqual(77, self.successResultOf(result).producer_id)

    def test_broker_refuses(self) -> None:
        """
        Where the broker has no id to give, the answer says why.
        """
        error = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not yet")
        self.patch(self.broker, "new_producer_id", lambda: fail(error))
        self.assertEqual(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, self.refused())

    def test_denied(self) -> None:
        """
        Who may neither write idempotently to the cluster nor write any topic gets no id.
        """
        self.deny()
        for version in VERSIONS:
            self.assertEqual(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, self.refused(version), version)

    def test_any_topic_is_enough(self) -> None:
        """
        Who may write any topic may be idempotent there.
        """
        self.deny("returns")
        self.assertEqual(ErrorCode.NONE, self.ask().error_code)

    def test_cluster_is_enough(self) -> None:
        """
        Who may write idempotently to the cluster is not asked for more.
        """
        authorizer = self.serving.parts.authorizer = Denying(lambda *_: False)
        self.ask()
        self.assertEqual([(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)], [one[:2] for one in authorizer.asked])

    def test_transactional(self) -> None:
        """
        The coordinator says who the producer is: the same id again, and a later epoch; after the permission.
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
