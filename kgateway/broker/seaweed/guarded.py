"""
A channel whose calls are not made while their address does not answer.
"""

from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.python.failure import Failure

from kgateway.broker.seaweed.breaker import Breaker
from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.grpc.method import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Ended, Received, Stream


class GuardedChannel:
    """
    Of one address. Streams are opened as they are asked for: those who have long ones pause between them.
    """

    def __init__(self, channel: Channel, breaker: Breaker) -> None:
        self._channel = channel
        self._breaker = breaker

    @property
    def is_out(self) -> bool:
        """
        Whether there was no answer for long, nor one since.
        """
        return self._breaker.is_failing

    def call(self, method: Method[RequestT, ResponseT], request: RequestT, timeout: float) -> Deferred[ResponseT]:
        """
        The answer to a message; an RpcError where there is none in so many seconds.
        """
        try:
            self._breaker.admit()
        except RpcError:
            return fail()
        return self._channel.call(method, request, timeout).addCallbacks(self._succeeded, self._failed)

    def open(
        self, method: Method[RequestT, ResponseT], received: Received, ended: Ended, timeout: float | None = None
    ) -> Stream:
        """
        A stream of messages.
        """
        return self._channel.open(method, received, ended, timeout)

    def close(self) -> Deferred[None]:
        """
        End all calls.
        """
        return self._channel.close()

    def _succeeded(self, response: ResponseT) -> ResponseT:
        self._breaker.succeeded()
        return response

    def _failed(self, failure: Failure) -> Failure:
        error = failure.value
        if isinstance(error, CancelledError) or (isinstance(error, RpcError) and error.status is Status.CANCELLED):
            self._breaker.withdrawn()
        elif isinstance(error, RpcError) and self._is_no_answer(error):
            self._breaker.failed(error.message)
        else:
            self._breaker.succeeded()
        return failure

    def _is_no_answer(self, error: RpcError) -> bool:
        """
        Whether nobody was heard. A broker that runs answers UNAVAILABLE too, while it has nobody to ask in its turn;
        what the channel itself says of its connection begins with the address.
        """
        if error.status is Status.UNAVAILABLE:
            return error.message.startswith(self._channel.authority)
        return error.status is Status.DEADLINE_EXCEEDED
