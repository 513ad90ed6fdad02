"""
Keys and values of state logs, in Kafka's own form: a table behind an i16, which tells its kind or its version.
"""

from typing import TypeVar

from kgateway.wire.codec import decoder, encode
from kgateway.wire.malformed import Malformed, Place
from kgateway.wire.schema import Message

M = TypeVar("M", bound=Message)

_PREFIX_SIZE = 2
_PREFIXES = [number.to_bytes(_PREFIX_SIZE, "big") for number in range(32)]


def prefix_of(data: bytes) -> int:
    """
    The number that stands first.
    """
    return int.from_bytes(data[:_PREFIX_SIZE], "big", signed=True)


def with_prefix(prefix: int, message: Message, version: int) -> bytes:
    """
    The message in this version, behind the number.
    """
    return _PREFIXES[prefix] + encode(message, version)


def after_prefix(table: type[M], version: int, data: bytes) -> M:
    """
    What stands behind the number, all of it.
    """
    found, end = decoder(table, version)(data, _PREFIX_SIZE)
    if end != len(data):
        raise Malformed(Place(table.__spec__.name, version, "the end"), end, f"{len(data) - end} bytes are left over")
    return found
