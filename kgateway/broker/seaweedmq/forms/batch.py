"""
The form `batch`: a message is a whole batch, as Kafka's consumers get it. Nothing is opened, and nothing is lost.

What others write into such a topic is no batch, and has none of Kafka's offsets. A batch that was damaged has some: it
is told from what never was one by what is left of it.
"""

from collections.abc import Iterable, Iterator

from kgateway.broker.seaweedmq.forms.form import Form, LeftOut, Message, Placed, Report, only_repeated, repeated
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.records.batch import Batch, BatchHeader, crc_holds, read_batch, was_batch
from kgateway.wire.malformed import Malformed, Place
from kgateway.wire.types import Buffer


class BatchForm(Form):
    """
    One message for each batch, without a key.
    """

    name, batched = "batch", True

    def encode(self, batch: Batch, base_offset: int, partition: int) -> list[Message]:
        return [Message(b"", batch.data)]

    def walk(
        self, entries: Iterable[Entry], shift: int = 0, end: int = 0, report: Report = only_repeated
    ) -> Iterator[Placed]:
        for entry, header in _whole(entries, end, report):
            span = header.last_offset_delta + 1
            batch = header if header.producer_id >= 0 else None
            yield Placed(header.base_offset, span, entry.offset, entry.ts_ns, header.max_timestamp, batch)

    def decode(
        self, entries: Iterable[Entry], shift: int = 0, end: int = 0, report: Report = only_repeated
    ) -> list[Buffer]:
        return [entry.value for entry, _ in _whole(entries, end, report)]


def _whole(entries: Iterable[Entry], end: int, report: Report) -> Iterator[tuple[Entry, BatchHeader]]:
    for entry in entries:
        try:
            header = _read(entry).header
        except Malformed as failure:
            reason = f"the value is no batch of Kafka's: {failure}"
            report(LeftOut(entry.offset, reason, is_foreign=not was_batch(entry.value)))
            continue
        if header.base_offset < end:
            report(repeated(entry, header.base_offset, end))
            continue
        yield entry, header
        end = header.last_offset + 1


def _read(entry: Entry) -> Batch:
    batch = read_batch(entry.value)
    size = len(batch.data)
    if size != len(entry.value):
        raise Malformed(Place("RecordBatch", 2, "batch_length"), size, f"{len(entry.value) - size} bytes are left over")
    if not crc_holds(batch):
        raise Malformed(Place("RecordBatch", 2, "crc"), 17, "the CRC is not that of the bytes")
    return batch
