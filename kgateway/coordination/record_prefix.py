"""
Keys and values of state logs, in Kafka's own form: an i16 that tells the kind or the version, then a table.
"""

from typing import TypeVar

from kgateway.wire.codec import decoder, encode
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.schema import Message

M = TypeVar("M", bound=Message)

_PREFIX_SIZE = 2
_PREFIXES = [number.to_bytes(_PREFIX_SIZE, "big") for number in range(32)]


def prefix_of(data: bytes) -> int:
    return int.from_bytes(data[:_PREFIX_SIZE], "big", signed=True)


def with_prefix(prefix: int, message: Message, version: int) -> bytes:
    return _PREFIXES[prefix] + encode(message, version)


def after_prefix(table: type[M], version: int, data: bytes) -> M:
    """
    Decode the message after the prefix, which must be all that is left.
    """
    found, end = decoder(table, version)(data, _PREFIX_SIZE)
    if end != len(data):
        raise Malformed(
            MessageField(table.__spec__.name, version, "the end"), end, f"{len(data) - end} bytes are left over"
        )
    return found
