"""
The format `batch`: a message is a whole batch, as Kafka's consumers get it. Nothing is unpacked, and nothing is lost.

What other programs write into such a topic is no batch, and has none of Kafka's offsets. A damaged batch has some: what
is left of it tells it from a value that never was one.
"""

from collections.abc import Iterable, Iterator

from kgateway.broker.seaweedmq.formats.format import (
    Message,
    MessageFormat,
    PlacedMessage,
    Report,
    SkippedMessage,
    raise_unless_repeated,
    repeated,
)
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.records.batch import Batch, BatchHeader, crc_holds, read_batch, was_batch
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.types import Buffer


class BatchFormat(MessageFormat):
    """
    One message for each batch, without a key.
    """

    name, batched = "batch", True

    def encode(self, batch: Batch, base_offset: int, partition: int) -> list[Message]:
        return [Message(b"", batch.data)]

    def walk(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> Iterator[PlacedMessage]:
        for entry, header in _whole(entries, end, report):
            span = header.last_offset_delta + 1
            batch = header if header.producer_id >= 0 else None
            yield PlacedMessage(header.base_offset, span, entry.offset, entry.ts_ns, header.max_timestamp, batch)

    def decode(
        self, entries: Iterable[LoggedMessage], shift: int = 0, end: int = 0, report: Report = raise_unless_repeated
    ) -> list[Buffer]:
        return [entry.value for entry, _ in _whole(entries, end, report)]


def _whole(entries: Iterable[LoggedMessage], end: int, report: Report) -> Iterator[tuple[LoggedMessage, BatchHeader]]:
    for entry in entries:
        try:
            header = _read(entry).header
        except Malformed as failure:
            reason = f"the value is not a Kafka record batch: {failure}"
            report(SkippedMessage(entry.offset, reason, is_foreign=not was_batch(entry.value)))
            continue
        if header.base_offset < end:
            report(repeated(entry, header.base_offset, end))
            continue
        yield entry, header
        end = header.last_offset + 1


def _read(entry: LoggedMessage) -> Batch:
    batch = read_batch(entry.value)
    size = len(batch.data)
    if size != len(entry.value):
        raise Malformed(
            MessageField("RecordBatch", 2, "batch_length"), size, f"{len(entry.value) - size} bytes are left over"
        )
    if not crc_holds(batch):
        raise Malformed(MessageField("RecordBatch", 2, "crc"), 17, "the CRC is not that of the bytes")
    return batch
