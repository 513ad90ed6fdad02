"""
Properties of any bytes, whichever message they are decoded as.
"""

from functools import cache
from math import isnan
from time import process_time

from kgateway.wire.codec import decode, decoder, encode
from kgateway.wire.errors import Malformed
from kgateway.wire.schema import Message, Struct
from tests.fuzz.anatomy import paths

_paths = cache(paths)


def allowed_seconds(size: int) -> float:
    """
    The processor time allowed for decoding this many bytes: some twenty times the slowest message's measured time per
    megabyte, and half a second for other work of the interpreter.
    """
    return 0.5 + size * 20e-6


def check(message: type[Message], version: int, data: bytes) -> bool:
    """
    The bytes are a message, which encodes and decodes to itself, or Malformed names where they are wrong; either way
    soon. Returns whether they are a message.
    """
    try:
        decoder(message, version)  # writing the function does not count
        started = process_time()
        value = _decoded(message, version, data)
        taken = process_time() - started
        assert taken < allowed_seconds(len(data)), f"{taken} s for {len(data)} bytes"
        if value is None:
            return False
        again = decode(message, version, encode(value, version))
        assert again == value or _same(again, value), f"{value} came back as {again}"
        return True
    except Exception as failure:
        failure.add_note(_shown(message, version, data))
        raise


def refusal(message: type[Message], version: int, data: bytes) -> Malformed:
    """
    The failure to decode these bytes, which must not be a message.
    """
    try:
        decode(message, version, data)
    except Malformed as malformed:
        _check_refusal(malformed, message, version, data)
        return malformed
    raise AssertionError(f"taken for a message: {_shown(message, version, data)}")


def _shown(message: type[Message], version: int, data: bytes) -> str:
    shown = f"bytes.fromhex({data.hex()!r})" if len(data) <= 4096 else f"{len(data)} bytes from {data[:64]!r} on"
    return f"{message.__name__} v{version}, {shown}"


def _decoded(message: type[Message], version: int, data: bytes) -> Message | None:
    try:
        return decode(message, version, data)
    except Malformed as malformed:
        _check_refusal(malformed, message, version, data)
        return None


def _check_refusal(malformed: Malformed, message: type[Message], version: int, data: bytes) -> None:
    field = malformed.field
    assert type(malformed) is Malformed
    assert (field.message, field.version) == (message.__name__, version), str(malformed)
    assert field.path in _paths(message), str(malformed)
    assert 0 <= malformed.position <= len(data), str(malformed)
    assert malformed.reason


def _same(one: object, other: object) -> bool:
    """
    Equality in which NaN equals itself.
    """
    match one, other:
        case float(), float():
            return one == other or (isnan(one) and isnan(other))
        case list(), list():
            return len(one) == len(other) and all(map(_same, one, other))
        case Struct(), Struct():
            return type(one) is type(other) and all(
                _same(getattr(one, f.name), getattr(other, f.name)) for f in one.__fields__
            )
        case _:
            return one == other
