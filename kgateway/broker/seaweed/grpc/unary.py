"""
A call with one message either way.
"""

from typing import Generic

from google.protobuf.message import DecodeError
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.grpc.method import ResponseT
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Stream


class Unary(Generic[ResponseT]):
    """
    The answer of one. Where nobody waits for it any more the call is cancelled.
    """

    def __init__(self, response: type[ResponseT]) -> None:
        self.answered: Deferred[ResponseT] = Deferred(self._cancel)
        self.stream: Stream
        self._response = response
        self._messages: list[bytes] = []
        self._is_cancelled = False

    def received(self, message: bytes) -> None:
        self._messages.append(message)

    def ended(self, error: RpcError | None) -> None:
        del self.stream  # it has this, and this would have it
        if self._is_cancelled:
            return
        try:
            response = self._message(error)
        except RpcError as failed:
            self.answered.errback(failed)
        else:
            self.answered.callback(response)

    def _message(self, error: RpcError | None) -> ResponseT:
        if error:
            raise error
        if len(self._messages) != 1:
            raise RpcError(Status.INTERNAL, f"the peer answered with {len(self._messages)} messages instead of one")
        try:
            return self._response.FromString(self._messages[0])
        except DecodeError as failed:
            name = self._response.DESCRIPTOR.full_name
            raise RpcError(Status.INTERNAL, f"the peer answered with what is no {name}: {failed}") from failed

    def _cancel(self, _: Deferred[ResponseT]) -> None:
        self._is_cancelled = True
        self.stream.cancel()
