"""
What a form is: a way of writing Kafka's batches as messages of SeaweedMQ.

A form tells of each message of a log where it stands among Kafka's offsets. Where it writes no offset into the message,
Kafka's is SeaweedMQ's and a `shift` that the caller knows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kgateway.broker.seaweed.protos.schema_pb2 import RecordType
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import Batch, BatchHeader
from kgateway.wire.malformed import Malformed, Place
from kgateway.wire.types import Buffer

_LOWEST = -(1 << 63)


class Message(NamedTuple):
    """
    What is published.
    """

    key: bytes
    value: Buffer


class Placed(NamedTuple):
    """
    Where a message stands in Kafka's order.
    """

    offset: int  # Kafka's, of the first record in it
    span: int  # how many of Kafka's offsets it takes
    message: int  # SeaweedMQ's offset
    ts_ns: int
    max_timestamp: int  # of its records, in milliseconds
    batch: BatchHeader | None = None  # of an idempotent producer, which ends with this message


class LeftOut(NamedTuple):
    """
    A message that consumers do not see, by SeaweedMQ's offset, and why.
    """

    offset: int
    reason: str
    is_repeated: bool = False  # Kafka's offset was there before, and so its records were
    is_foreign: bool = False  # another has written it, who knows nothing of the form, and it has no offset of Kafka's


Report = Callable[[LeftOut], None]


def only_repeated(left_out: LeftOut) -> None:
    """
    What is done where nobody asks for a report: a repetition is nothing to speak of, anything else stops.
    """
    if not left_out.is_repeated:
        raise Malformed(Place("message", 0, "value"), left_out.offset, left_out.reason)


def repeated(entry: Entry, offset: int, end: int) -> LeftOut:
    """
    A message that comes again.
    """
    reason = f"it holds Kafka's offset {offset}, and the log has all before {end} already"
    return LeftOut(entry.offset, reason, is_repeated=True)


class Form(ABC):
    """
    One of the forms of `seaweedmq.format`.
    """

    name: str  # as the config has it
    batched = False  # whether a message is a batch, and not a record
    numbered = True  # whether a message says which of Kafka's offsets it has
    needs: Mapping[str, str] = MappingProxyType({})  # configs of a topic, without which nothing can be produced

    def record_type(self) -> RecordType | None:
        """
        The columns of the topic, if its messages have any.
        """
        return None

    def check(self, config: TopicConfig) -> None:  # noqa: B027 (most have a place for all of it)
        """
        Refuse, by a KafkaError, topics that are set to something that the form has no place for.
        """

    @abstractmethod
    def encode(self, batch: Batch, base_offset: int, partition: int) -> list[Message]:
        """
        The messages of a batch that has its place in the log; a KafkaError for what the form has no place for.
        """

    @abstractmethod
    def walk(
        self, entries: Iterable[Entry], shift: int = 0, end: int = 0, report: Report = only_repeated
    ) -> Iterator[Placed]:
        """
        Where messages stand that follow one another, but for those before Kafka's offset `end`.
        """

    @abstractmethod
    def decode(
        self, entries: Iterable[Entry], shift: int = 0, end: int = 0, report: Report = only_repeated
    ) -> list[Buffer]:
        """
        Batches of what they hold, but for what is before Kafka's offset `end`.
        """

    def shift_behind(self, entries: list[Entry], shift: int) -> int:
        """
        The shift with which messages that follow these ones are read.
        """
        return shift

    def placed(self, entry: Entry, shift: int = 0, report: Report = only_repeated) -> Placed | None:
        """
        Where one message stands; `None` where it is left out.
        """
        return next(self.walk([entry], shift, _LOWEST, report), None)
