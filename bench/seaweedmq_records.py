"""
What a record costs in front of SeaweedMQ, on one processor: `python -m bench.seaweedmq_records`.

In the formats `record` and `plain` each record is a message of SeaweedMQ. The rows of "Protocol Buffers alone" do in a
loop what no implementation of ours can leave out: they fill or read messages with the upb library, and nothing else.
"""

from collections.abc import Callable, Sequence
from struct import Struct

from bench.pairing import timed
from bench.recording import recorded, results_file
from bench.records import TEXT
from kgateway.broker.seaweed.protos.filer_pb2 import LogEntry
from kgateway.broker.seaweed.protos.messaging_pb2 import PublishMessageResponse
from kgateway.broker.seaweed.protos.schema_pb2 import RecordValue
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage, logged_messages
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.publishing.publish_stream import encode_publish_request
from kgateway.records.batch import Batch, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.record import Record, records

RECORDS = 1_000
VALUE_BYTES = 1_000
BASE_OFFSET = 5_000_000
TIME_MS = 1_700_000_000_000
IN_A_MILLISECOND = 50  # as at 50 MB/s
_LENGTH = Struct(">I")


def batch() -> Batch:
    builder = BatchBuilder()
    for number in range(RECORDS):
        at = number * 97 % (len(TEXT) - VALUE_BYTES)
        builder.append(
            b"key-%08d" % number, TEXT[at : at + VALUE_BYTES], timestamp=TIME_MS + number // IN_A_MILLISECOND
        )
    return read_batch(builder.build())


def log_file(messages: Sequence[Message]) -> bytes:
    """
    The messages as SeaweedMQ writes them to a file.
    """
    parts = list[bytes]()
    for number, (key, value) in enumerate(messages):
        time_ns = TIME_MS * 1_000_000 + number * 1_000_000 // IN_A_MILLISECOND
        entry = LogEntry(ts_ns=time_ns, data=bytes(value), key=bytes(key), offset=BASE_OFFSET + number)
        data = entry.SerializeToString()
        parts += _LENGTH.pack(len(data)), data
    return b"".join(parts)


def written(produced: Batch) -> dict[str, Callable[[], object]]:
    """
    What is done to a produced batch, in parts.
    """
    message_format = FORMATS["record"]
    messages = message_format.encode(produced, BASE_OFFSET, 0)
    found = list(records(produced))
    response = PublishMessageResponse(assigned_offset=BASE_OFFSET).SerializeToString()
    return {
        "records of the batch": lambda: list(records(produced)),
        "all of the format `record`, with these": lambda: message_format.encode(produced, BASE_OFFSET, 0),
        "Protocol Buffers alone: a RecordValue": lambda: [_filled(record) for record in found],
        "the request to publish": lambda: [encode_publish_request(key, value) for key, value in messages],
        "Protocol Buffers alone: the response": lambda: [
            PublishMessageResponse.FromString(response) for _ in range(RECORDS)
        ],
    }


def _filled(record: Record) -> bytes:
    columns = RecordValue()
    fields = columns.fields
    fields["key"].bytes_value = record.key or b""
    fields["value"].bytes_value = record.value or b""
    fields["_kafka_offset"].int64_value = record.offset
    fields["_kafka_partition"].int32_value = 0
    fields["_kafka_timestamp"].int64_value = record.timestamp
    return columns.SerializeToString()


def read(form: str, produced: Batch) -> dict[str, Callable[[], object]]:
    """
    What is done to messages in a file, in parts.
    """
    message_format = FORMATS[form]
    data = log_file(message_format.encode(produced, BASE_OFFSET, 0))
    entries = list(logged_messages(data))
    ways: dict[str, Callable[[], object]] = {
        "messages of the file": lambda: list(logged_messages(data)),
        f"all of the format `{form}`, with these": lambda: message_format.decode(logged_messages(data)),
    }
    if form == "record":
        ways["Protocol Buffers alone: a RecordValue"] = lambda: [_columns(entry) for entry in entries]
    return ways


def _columns(entry: LoggedMessage) -> tuple[object, ...]:
    fields = RecordValue.FromString(entry.value).fields
    return (
        fields["key"].bytes_value,
        fields["value"].bytes_value,
        fields["_kafka_offset"].int64_value,
        fields["_kafka_timestamp"].int64_value,
    )


def _print(title: str, ways: dict[str, Callable[[], object]]) -> None:
    print(f"| {title} | µs per record |\n|---|---:|")
    for name, micros in timed(ways).items():
        print(f"| {name} | {micros / RECORDS:.2f} |")
    print()


def measure() -> None:
    produced = batch()
    _print("produce", written(produced))
    _print("read a file in the format `record`", read("record", produced))
    _print("read a file in the format `plain`", read("plain", produced))


if __name__ == "__main__":
    with recorded(results_file("seaweedmq_records"), "protobuf") as recording, recording.of("seaweedmq_records"):
        measure()
