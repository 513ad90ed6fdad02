"""
The tables of message sets, compared with kafka-python's builder.
"""

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from kgateway.records.message_set import LegacyMessage, MessageSetEntry
from kgateway.wire.codec import decode, decoder, encode
from kgateway.wire.errors import Malformed


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("key", "value"), [(b"key", b"value"), (None, None), (b"", b""), (None, b"v" * 70_000)])
def test_tables_agree_with_kafka_python(magic: int, key: bytes | None, value: bytes | None) -> None:
    """
    An entry and its message have the same bytes, with lengths of four bytes and a timestamp from magic 1 on.
    """
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(7, 1_234, key, value)
    data = bytes(builder.build())
    entry, start = decoder(MessageSetEntry, magic)(data, 0)
    message = decode(LegacyMessage, magic, data[start:])
    assert (entry.offset, entry.message_size) == (7, len(data) - start)
    assert (message.magic, message.attributes, message.key, message.value) == (magic, 0, key, value)
    assert message.timestamp == (1_234 if magic else -1)
    assert encode(entry, magic) + encode(message, magic) == data


def test_declared_lengths_are_checked() -> None:
    """
    A value of two gigabytes in a few bytes is malformed.
    """
    with pytest.raises(Malformed, match="value at byte 14: 2147483647 declared, with 0 bytes left"):
        decode(LegacyMessage, 0, bytes(6) + b"\xff\xff\xff\xff" + b"\x7f\xff\xff\xff")
