"""
Messages to bytes and back.

The function for a message in a version is written when it is first asked for, and kept. Whoever handles many messages
takes it once by `decoder` or `encoder`; whoever handles few calls `decode` or `encode`.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from kgateway.wire.decoding import DecoderWriter
from kgateway.wire.encoding import EncoderWriter
from kgateway.wire.malformed import Malformed, Place, Unencodable
from kgateway.wire.schema import Message
from kgateway.wire.types import Buffer

M = TypeVar("M", bound=Message)

_ACCIDENTS = (struct.error, IndexError, ValueError)
_MISFITS = (struct.error, ValueError, TypeError, AttributeError)


@cache
def _decoder(message: type[Message], version: int) -> Callable[[bytes, int], tuple[Any, int]]:
    compiled = DecoderWriter(message, version).write()
    function = compiled.function

    def decode(data: bytes, pos: int) -> tuple[Any, int]:
        try:
            answer: tuple[Any, int] = function(data, pos)
            return answer
        except _ACCIDENTS as accident:
            field, position = compiled.blame_bytes(accident)
            malformed = Malformed(Place(message.__spec__.name, version, field), position, _reason(accident))
        raise malformed  # out here it has no context, and so no hold on the failed function's variables

    return decode


def _reason(accident: Exception) -> str:
    match accident:
        case UnicodeDecodeError():
            return f"not UTF-8: {accident.reason}"
        case struct.error() | IndexError():
            return "the bytes end here"
        case _:
            return str(accident)


@cache
def _encoder(message: type[Message], version: int) -> Callable[[Any], list[Buffer]]:
    compiled = EncoderWriter(message, version).write()
    function = compiled.function

    def encode(value: Any) -> list[Buffer]:
        try:
            parts: list[Buffer] = function(value)
        except _MISFITS as misfit:
            field, why = compiled.blame_value(misfit)
            raise Unencodable(Place(message.__spec__.name, version, field), _complaint(why)) from misfit
        return parts

    return encode


def _complaint(misfit: Exception) -> str:
    return "null is not allowed here" if "NoneType" in str(misfit) else str(misfit)


def decoder(message: type[M], version: int) -> Callable[[bytes, int], tuple[M, int]]:
    """
    The function from bytes and a position to the message that starts there and the position behind it.
    """
    return _decoder(message, version)


def encoder(message: type[M], version: int) -> Callable[[M], list[Buffer]]:
    """
    The function from a message to its buffers; record batches are among them uncopied.
    """
    return _encoder(message, version)


def decode(message: type[M], version: int, data: bytes) -> M:
    """
    The message that these bytes are, all of them.
    """
    value, end = decoder(message, version)(data, 0)
    if end != len(data):
        place = Place(message.__spec__.name, version, "the end")
        raise Malformed(place, end, f"{len(data) - end} bytes are left over")
    return value


def encode(message: Message, version: int) -> bytes:
    """
    The bytes of a message.
    """
    return b"".join(_encoder(type(message), version)(message))
