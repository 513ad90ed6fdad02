"""
A circuit breaker: an address that does not answer is not asked for a while; then one caller probes it.
"""

from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from kgateway.broker.seaweed.grpc.call_headers import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Ended, Received, Stream

_FAILURES_MAX = 5
_PAUSE_S = 0.5
_LONGEST_S = 2.0


class CircuitBreaker:
    """
    The breaker of one address. An admitted caller reports how its call went.
    """

    def __init__(self, name: str, clock: IReactorTime) -> None:
        self._name = name
        self._clock = clock
        self._failures = 0  # in a row
        self._why = ""
        self._probe_at = 0.0
        self._is_probing = False

    @property
    def is_failing(self) -> bool:
        """
        Whether several calls in a row have failed.
        """
        return self._failures >= _FAILURES_MAX

    def admit(self) -> None:
        """
        Raises RpcError if no call is to be made now.
        """
        if self.is_failing and (self._is_probing or self._clock.seconds() < self._probe_at):
            problem = f"{self._name} is not called for a while: {self._failures} calls in a row have failed"
            raise RpcError(Status.UNAVAILABLE, f"{problem}, the last by {self._why}")
        self._is_probing = self.is_failing

    def succeeded(self) -> None:
        self._failures, self._is_probing = 0, False

    def failed(self, why: str) -> None:
        self._failures += 1
        self._why = why
        self._is_probing = False
        pauses = self._failures - _FAILURES_MAX
        if pauses >= 0:
            self._probe_at = self._clock.seconds() + min(_LONGEST_S, _PAUSE_S * 2 ** min(pauses, 10))

    def withdrawn(self) -> None:
        """
        Forget a caller that did not wait for the answer.
        """
        self._is_probing = False


class GuardedChannel:
    """
    A channel to one address with its circuit breaker. Streams are not guarded: their users pause between long ones.
    """

    def __init__(self, channel: Channel, breaker: CircuitBreaker) -> None:
        self._channel = channel
        self._breaker = breaker

    @property
    def is_out(self) -> bool:
        return self._breaker.is_failing

    def call(self, method: Method[RequestT, ResponseT], request: RequestT, timeout: float) -> Deferred[ResponseT]:
        try:
            self._breaker.admit()
        except RpcError:
            return fail()
        return self._channel.call(method, request, timeout).addCallbacks(self._succeeded, self._failed)

    def open(
        self, method: Method[RequestT, ResponseT], received: Received, ended: Ended, timeout: float | None = None
    ) -> Stream:
        return self._channel.open(method, received, ended, timeout)

    def close(self) -> Deferred[None]:
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
        Whether the address did not answer at all. A running broker answers UNAVAILABLE, too, while no server answers
        its own calls; errors of the channel's connection begin with the address.
        """
        if error.status is Status.UNAVAILABLE:
            return error.message.startswith(self._channel.authority)
        return error.status is Status.DEADLINE_EXCEEDED
