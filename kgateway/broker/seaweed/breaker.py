"""
A circuit breaker: who does not answer is left alone for a while, and then asked by one caller before all others ask.
"""

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.grpc.status import RpcError, Status

_FAILURES_MAX = 5
_PAUSE_S = 0.5
_LONGEST_S = 2.0


class Breaker:
    """
    Of one address. Who is admitted says afterwards how it went.
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
        Whether there was no answer for long, nor one since.
        """
        return self._failures >= _FAILURES_MAX

    def admit(self) -> None:
        """
        An RpcError where nobody is admitted now.
        """
        if self.is_failing and (self._is_probing or self._clock.seconds() < self._probe_at):
            problem = f"{self._name} is not asked for a while: {self._failures} calls in a row have failed"
            raise RpcError(Status.UNAVAILABLE, f"{problem}, the last by {self._why}")
        self._is_probing = self.is_failing

    def succeeded(self) -> None:
        """
        There was an answer.
        """
        self._failures, self._is_probing = 0, False

    def failed(self, why: str) -> None:
        """
        There was none.
        """
        self._failures += 1
        self._why = why
        self._is_probing = False
        pauses = self._failures - _FAILURES_MAX
        if pauses >= 0:
            self._probe_at = self._clock.seconds() + min(_LONGEST_S, _PAUSE_S * 2 ** min(pauses, 10))

    def withdrawn(self) -> None:
        """
        The caller did not wait for the answer.
        """
        self._is_probing = False
