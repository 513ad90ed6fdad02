"""
Messages to bytes and back.

The function for a message in a version is generated when it is first used, and cached. Code that handles many messages
takes it once with `decoder` or `encoder`; code that handles few calls `decode` or `encode`.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from kgateway.wire.decoding import DecoderWriter
from kgateway.wire.encoding import EncoderWriter
from kgateway.wire.errors import Malformed, MessageField, Unencodable
from kgateway.wire.schema import Message
from kgateway.wire.types import Buffer

M = TypeVar("M", bound=Message)

_DECODE_ERRORS = (struct.error, IndexError, ValueError)
_ENCODE_ERRORS = (struct.error, ValueError, TypeError, AttributeError)


@cache
def _decoder(message: type[Message], version: int) -> Callable[[bytes, int], tuple[Any, int]]:
    compiled = DecoderWriter(message, version).write()
    function = compiled.function

    def decode(data: bytes, pos: int) -> tuple[Any, int]:
        try:
            decoded: tuple[Any, int] = function(data, pos)
            return decoded
        except _DECODE_ERRORS as error:
            field, position = compiled.blame_bytes(error, data, pos)
            malformed = Malformed(MessageField(message.__spec__.name, version, field), position, _reason(error))
        raise malformed  # out here it has no context, which would keep the variables of the failed function

    return decode


def _reason(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return f"not UTF-8: {error.reason}"
        case struct.error() | IndexError():
            return "the bytes end here"
        case _:
            return str(error)


@cache
def _encoder(message: type[Message], version: int) -> Callable[[Any], list[Buffer]]:
    compiled = EncoderWriter(message, version).write()
    function = compiled.function

    def encode(value: Any) -> list[Buffer]:
        try:
            parts: list[Buffer] = function(value)
        except _ENCODE_ERRORS as error:
            field, why = compiled.blame_value(error, value)
            raise Unencodable(MessageField(message.__spec__.name, version, field), _complaint(why)) from error
        return parts

    return encode


def _complaint(error: Exception) -> str:
    return "null is not allowed here" if "NoneType" in str(error) else str(error)


def decoder(message: type[M], version: int) -> Callable[[bytes, int], tuple[M, int]]:
    """
    The function from bytes and a position to the message that starts there and the position after it.
    """
    return _decoder(message, version)


def encoder(message: type[M], version: int) -> Callable[[M], list[Buffer]]:
    """
    The function from a message to its buffers; record batches are among them uncopied.
    """
    return _encoder(message, version)


def decode(message: type[M], version: int, data: bytes) -> M:
    """
    The message that takes up all of these bytes.
    """
    value, end = decoder(message, version)(data, 0)
    if end != len(data):
        raise Malformed(
            MessageField(message.__spec__.name, version, "the end"), end, f"{len(data) - end} bytes are left over"
        )
    return value


def encode(message: Message, version: int) -> bytes:
    return b"".join(_encoder(type(message), version)(message))
