"""
The answer of a call that is many messages and ends, such as a page of a listing.
"""

from twisted.internet.defer import CancelledError, Deferred

from kgateway.broker.seaweed.grpc.method import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.broker.seaweed.guarded import GuardedChannel


def streamed(
    channel: GuardedChannel, method: Method[RequestT, ResponseT], request: RequestT, timeout: float
) -> Deferred[list[ResponseT]]:
    """
    All of its messages, once it has ended.
    """
    messages: list[ResponseT] = []
    stream: Stream

    def received(message: bytes) -> None:
        messages.append(method.response.FromString(message))

    def ended(error: RpcError | None) -> None:
        if whole.called:
            return
        if error:
            whole.errback(error)
        else:
            whole.callback(messages)

    def cancel(whole: Deferred[list[ResponseT]]) -> None:
        whole.errback(CancelledError())
        stream.cancel()

    whole: Deferred[list[ResponseT]] = Deferred(cancel)
    stream = channel.open(method, received, ended, timeout)
    stream.send([request.SerializeToString()])
    stream.finish()
    return whole
