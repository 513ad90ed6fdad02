"""
The format `plain`: what the Go gateway of SeaweedFS writes and reads. A record's key and value are the message's, byte
for byte, and its time is the message's.

A message without a key is a record whose key is null. There is no place for headers, for a null value, for a key that
is empty and not null, nor for a producer's timestamps; batches of idempotent producers are accepted, and their sequence
numbers are not kept.
"""

from collections.abc import Iterable, Iterator
from types import MappingProxyType

from kgateway.broker.seaweedmq.formats.format import (
    Message,
    MessageFormat,
    PlacedMessage,
    Report,
    raise_unless_repeated,
    repeated,
)
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.record_batches import BatchRuns, refused, single_records
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import Batch, TimestampType
from kgateway.records.record import Record
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

MILLISECOND_NS = 1_000_000


class PlainFormat(MessageFormat):
    name, numbered = "plain", False
    needs = MappingProxyType({"message.timestamp.type": "LogAppendTime"})

    def check(self, config: TopicConfig) -> None:
        if config.timestamp_type is not TimestampType.LOG_APPEND_TIME:
            reason = "the format plain cannot store timestamps of producers: set message.timestamp.type=LogAppendTime"
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)

    def encode(self, batch: Batch, base_offset: int, partition: int) -> list[Message]:
        return [Message(record.key or b"", record.value or b"") for record in _checked(batch)]

    def walk(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> Iterator[PlacedMessage]:
        for entry, offset in _new(entries, shift, end, report):
            yield PlacedMessage(offset, 1, offset - shift, entry.ts_ns, entry.ts_ns // MILLISECOND_NS)

    def decode(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> list[Buffer]:
        runs = BatchRuns()
        for entry, offset in _new(entries, shift, end, report):
            runs.add(offset, entry.ts_ns // MILLISECOND_NS, entry.key or None, entry.value, by_append=True)
        return runs.finish()


def _new(entries: Iterable[LoggedMessage], shift: int, end: int, report: Report) -> Iterator[tuple[LoggedMessage, int]]:
    for entry in entries:
        offset = entry.offset + shift
        if offset < end:
            report(repeated(entry, offset, end))
            continue
        yield entry, offset
        end = offset + 1


def _checked(batch: Batch) -> list[Record]:
    found = single_records(batch)
    for number, record in enumerate(found):
        if record.headers:
            raise _no_place(number, "headers")
        if record.value is None:
            raise _no_place(number, "no value (it is a tombstone)")
        if record.key == b"":
            raise _no_place(number, "a key that is empty but not null")
    return found


def _no_place(number: int, what: str) -> KafkaError:
    return refused(f"record {number} of the batch has {what}, which the format plain cannot store")
