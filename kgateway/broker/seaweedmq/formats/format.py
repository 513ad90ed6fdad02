"""
A format is a way of writing Kafka's batches as messages of SeaweedMQ.

A format says for each message of a log where it stands among Kafka's offsets. If it writes no offset into the
message, Kafka's is its number, counted within its file, plus a `shift` that the caller knows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kgateway.broker.seaweed.protos.schema_pb2 import RecordType
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import Batch, BatchHeader
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.types import Buffer

_LOWEST = -(1 << 63)


class Message(NamedTuple):
    """
    A message to be published.
    """

    key: bytes
    value: Buffer


class PlacedMessage(NamedTuple):
    """
    Where a message stands in Kafka's order.
    """

    offset: int  # Kafka's, of the first record in it
    span: int  # how many of Kafka's offsets it takes
    message_offset: int  # SeaweedMQ's offset, counted within its file
    ts_ns: int
    max_timestamp: int  # of its records, in milliseconds
    batch: BatchHeader | None = None  # of an idempotent producer, if it ends with this message


class SkippedMessage(NamedTuple):
    """
    A message that consumers do not see, by SeaweedMQ's offset, and why.
    """

    offset: int
    reason: str
    is_repeated: bool = False  # its offsets, and so its records, were there before
    is_foreign: bool = False  # another program wrote it in no format of ours: it has no offset of Kafka's


Report = Callable[[SkippedMessage], None]


def raise_unless_repeated(left_out: SkippedMessage) -> None:
    """
    The default report: a repetition is ignored, anything else raises Malformed.
    """
    if not left_out.is_repeated:
        raise Malformed(MessageField("message", 0, "value"), left_out.offset, left_out.reason)


def repeated(entry: LoggedMessage, offset: int, end: int) -> SkippedMessage:
    """
    The report of a repeated message.
    """
    reason = f"it has Kafka's offset {offset}, but the log already has all offsets before {end}"
    return SkippedMessage(entry.offset, reason, is_repeated=True)


class MessageFormat(ABC):
    """
    One of the values of `seaweedmq.format`.
    """

    name: str  # as the config has it
    batched = False  # whether a message is a batch, and not a record
    numbered = True  # whether a message says which of Kafka's offsets it has
    shifts = False  # whether messages of others continue from those that do
    needs: Mapping[str, str] = MappingProxyType({})  # configs without which nothing can be produced to a topic

    def record_type(self) -> RecordType | None:
        """
        The columns of the topic, if its messages have any.
        """
        return None

    def check(self, config: TopicConfig) -> None:  # noqa: B027 (most have a place for all of it)
        """
        Raise a KafkaError for topics that are set to something that the format has no place for.
        """

    @abstractmethod
    def encode(self, batch: Batch, base_offset: int, partition: int) -> list[Message]:
        """
        The messages of a batch that has its offsets; a KafkaError for what the format has no place for.
        """

    @abstractmethod
    def walk(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> Iterator[PlacedMessage]:
        """
        Where consecutive messages stand, without those before Kafka's offset `end`.
        """

    @abstractmethod
    def decode(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> list[Buffer]:
        """
        Batches of what the messages hold, without what is before Kafka's offset `end`.
        """

    def shift_after(self, entries: list[LoggedMessage], shift: int) -> int:
        """
        The shift with which the messages after these are read.
        """
        return shift

    def placed(
        self, entry: LoggedMessage, shift: int = 0, report: Report = raise_unless_repeated
    ) -> PlacedMessage | None:
        """
        Where one message stands; `None` if it is skipped.
        """
        return next(self.walk([entry], shift, _LOWEST, report), None)
