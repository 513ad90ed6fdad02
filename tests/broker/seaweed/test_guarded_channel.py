"""
Which results of a call show that an address does not answer.
"""

from google.protobuf.wrappers_pb2 import BytesValue
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.seaweed.calls.breaker import CircuitBreaker, GuardedChannel
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from tests.broker.seaweed.grpc.peer import AUTHORITY, HEADERS, METHOD, Link, Peer

_TIMEOUT_S = 5


class GuardedChannelTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.peer = Peer()
        self.channel = GuardedChannel(self.peer.channel, CircuitBreaker(AUTHORITY, self.peer.clock))

    def call(self) -> Deferred[BytesValue]:
        call = self.channel.call(METHOD, BytesValue(), _TIMEOUT_S)
        self.peer.clock.advance(0)
        return call

    def refuse(self, context: Link, stream_id: int, status: Status) -> None:
        context.http2.send_headers(stream_id, HEADERS)
        context.end(stream_id, str(status.value), ("grpc-message", "in its own words"))

    def fails(self, call: Deferred[BytesValue]) -> Status:
        status: Status = self.failureResultOf(call, RpcError).value.status
        return status

    def test_five_connections_that_are_refused_are_enough(self) -> None:
        """
        A sixth connection is not tried.
        """
        for _ in range(5):
            self.assertFalse(self.channel.is_out)
            call = self.call()
            self.peer.attempts[-1][1].errback(ConnectError())
            self.assertIs(Status.UNAVAILABLE, self.fails(call))
        self.assertTrue(self.channel.is_out)
        self.assertIs(Status.UNAVAILABLE, self.fails(self.call()))
        self.assertEqual(5, len(self.peer.attempts))

    def test_who_is_silent_is_not_there(self) -> None:
        """
        A server may accept connections without answering.
        """
        for number in range(5):
            self.assertFalse(self.channel.is_out)
            call = self.call()
            if number == 0:
                self.peer.accept()
            self.peer.clock.advance(_TIMEOUT_S)
            self.assertIs(Status.DEADLINE_EXCEEDED, self.fails(call))
        self.assertTrue(self.channel.is_out)

    def test_who_says_that_others_are_not_there_is_there(self) -> None:
        """
        A broker that finds no other server to ask answers so.
        """
        calls = [self.call() for _ in range(10)]
        context = self.peer.accept()
        for number, call in enumerate(calls):
            self.refuse(context, 2 * number + 1, Status.UNAVAILABLE)
            self.assertIs(Status.UNAVAILABLE, self.fails(call))
        self.assertFalse(self.channel.is_out)

    def test_an_answer_forgives_all_failures(self) -> None:
        """
        Any answer counts.
        """
        for is_good in (True, False):
            for _ in range(4):
                call = self.call()
                self.peer.attempts[-1][1].errback(ConnectError())
                self.fails(call)
            call = self.call()
            context = self.peer.accept()
            if is_good:
                context.answer(1, BytesValue(value=b"answer").SerializeToString())
                self.assertEqual(b"answer", self.successResultOf(call).value)
            else:
                self.refuse(context, 1, Status.NOT_FOUND)
                self.assertIs(Status.NOT_FOUND, self.fails(call))
            context.transport.loseConnection()
            context.pump()
        self.assertFalse(self.channel.is_out)
