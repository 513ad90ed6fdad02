"""
Publishes to one partition of SeaweedMQ, in order, without waiting for one message before the next.

The broker answers each message with its offset, in the order of arrival; so answers are counted. A stream that breaks
does not show which of the unanswered messages have arrived: its owner reads the log, and continues with a new stream.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.broker.seaweed.protos.messaging_pb2 import PublishMessageRequest, PublishMessageResponse
from kgateway.broker.seaweed.protos.schema_pb2 import Partition, Topic
from kgateway.wire.types import Buffer
from kgateway.wire.varints import write_uvarint

HELLO_S = 15.0
_DATA, _KEY, _VALUE = b"\x12", b"\x0a", b"\x12"  # the tags of data in a request, and of its fields

OpenStream = Callable[[Callable[[bytes], None], Callable[[RpcError | None], None]], Stream]


class PublishStream:
    def __init__(
        self,
        acked: Callable[[int, int], None],
        broken: Callable[["PublishStream", RpcError], None],
        clock: IReactorTime,
    ) -> None:
        self._acked = acked  # called with a number of answers, and the offset of the last of them
        self._broken = broken
        self._clock = clock
        self._stream: Stream | None = None
        self._hello: Deferred[None] | None = Deferred()
        self._late: IDelayedCall | None = None
        self._answers, self._last_offset = 0, -1
        self._telling: IDelayedCall | None = None

    def open(self, open_stream: OpenStream, topic: Topic, partition: Partition, name: str) -> Deferred[None]:
        """
        Ask for the partition; fires when the broker takes messages.
        """
        hello = self._hello
        assert hello is not None, "a publisher can be opened only once"
        self._late = self._clock.callLater(HELLO_S, self._too_late)
        stream = self._stream = open_stream(self._received, self._ended)
        init = PublishMessageRequest.InitMessage(topic=topic, partition=partition, publisher_name=name)
        stream.send([PublishMessageRequest(init=init).SerializeToString()])
        return hello

    def send(self, messages: Sequence[bytes]) -> None:
        if self._stream:
            self._stream.send(messages)

    def finish(self) -> None:
        """
        End our side of the stream; the broker answers all that it has, and then ends the stream.
        """
        if self._stream:
            self._stream.finish()

    def close(self) -> None:
        """
        Cancel the stream without a callback.
        """
        self._broken = lambda _publisher, _error: None
        if self._stream:
            self._stream.cancel()
        self._end(RpcError(Status.CANCELLED, "the publisher was closed"))

    def _received(self, data: bytes) -> None:
        answer = PublishMessageResponse.FromString(data)
        if answer.error_code or answer.error:
            self._refused(answer)
        elif self._hello:
            self._greeted()
        else:
            self._answers += 1
            self._last_offset = answer.assigned_offset
            if self._telling is None:  # answers that have arrived by then are reported together
                self._telling = self._clock.callLater(0, self._tell)

    def _greeted(self) -> None:
        hello, self._hello = self._hello, None
        self._not_late()
        if hello:
            hello.callback(None)

    def _tell(self) -> None:
        self._telling = None
        answers, self._answers = self._answers, 0
        if answers:
            self._acked(answers, self._last_offset)

    def _refused(self, answer: PublishMessageResponse) -> None:
        self._end(RpcError(Status.FAILED_PRECONDITION, f"{answer.error} (code {answer.error_code})"))

    def _too_late(self) -> None:
        self._late = None
        if self._stream:
            self._stream.cancel()
        self._end(RpcError(Status.DEADLINE_EXCEEDED, f"no response to the opening of the stream within {HELLO_S} s"))

    def _ended(self, error: RpcError | None) -> None:
        self._end(error or RpcError(Status.UNAVAILABLE, "the broker has ended the stream"))

    def _end(self, error: RpcError) -> None:
        if self._stream is None and self._hello is None:
            return
        self._stream = None
        self._not_late()
        if self._telling:
            self._telling.cancel()
        self._tell()
        hello, self._hello = self._hello, None
        if hello:
            hello.errback(error)
        else:
            self._broken(self, error)

    def _not_late(self) -> None:
        if self._late:
            self._late.cancel()
            self._late = None


def encode_publish_request(key: bytes, value: Buffer) -> bytes:
    """
    A request to publish a message, as bytes on the wire.
    """
    before_key, before_value = _before(len(key), len(value))
    return b"".join((before_key, key, before_value, value))


@lru_cache(1 << 12)
def _before(key_size: int, value_size: int) -> tuple[bytes, bytes]:
    """
    The bytes before a key, and before a value, of these sizes; most messages of a topic have the same.
    """
    before_key = _KEY + _varint(key_size) if key_size else b""
    before_value = _VALUE + _varint(value_size) if value_size else b""
    size = len(before_key) + key_size + len(before_value) + value_size
    return _DATA + _varint(size) + before_key, before_value


def _varint(number: int) -> bytes:
    encoded = bytearray()
    write_uvarint(encoded, number)
    return bytes(encoded)
