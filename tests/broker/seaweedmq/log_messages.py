"""
Messages as SeaweedMQ's broker writes them into a log, for tests.
"""

from collections.abc import Iterable, Sequence
from hashlib import md5

from kgateway.broker.seaweed.protos.filer_pb2 import LogEntry
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage

NOW_NS = 1_795_321_791_102_361_121


def key_hash(key: bytes) -> int:
    """
    The hash that the broker writes beside a key.
    """
    return int.from_bytes(md5(key).digest()[:4], "big", signed=True)


def framed(entries: Iterable[LoggedMessage]) -> bytes:
    """
    The content of a log file with these messages.
    """
    data = bytearray()
    for offset, ts_ns, key, value, _ in entries:
        entry = LogEntry(ts_ns=ts_ns, partition_key_hash=key_hash(key), data=value, key=key, offset=offset)
        body = entry.SerializeToString()
        data += len(body).to_bytes(4, "big") + body
    return bytes(data)


def logged(messages: Sequence[Message], first: int = 0, ts_ns: int = NOW_NS) -> list[LoggedMessage]:
    """
    Messages that were published one after the other, a microsecond apart.
    """
    return [
        LoggedMessage(first + number, ts_ns + number * 1000, message.key, bytes(message.value))
        for number, message in enumerate(messages)
    ]
