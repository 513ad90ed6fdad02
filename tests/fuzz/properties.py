"""
What holds of any bytes, whichever message they are taken for.
"""

from functools import cache
from math import isnan
from time import process_time

from kgateway.wire.codec import decode, decoder, encode
from kgateway.wire.malformed import Malformed
from kgateway.wire.schema import Message, Struct
from tests.fuzz.anatomy import paths

_paths = cache(paths)


def allowed_seconds(size: int) -> float:
    """
    The processor time that decoding so many bytes may take: some twenty times what the slowest message was seen to take
    for a megabyte, and half a second for whatever else the interpreter has to do meanwhile.
    """
    return 0.5 + size * 20e-6


def check(message: type[Message], version: int, data: bytes) -> bool:
    """
    The bytes are a message, which encodes and decodes to itself, or Malformed says where they are not; either way soon.
    Tells whether they are one.
    """
    try:
        decoder(message, version)  # writing the function is not part of the time
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
    The failure that these bytes are; they must not be a message.
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
    place = malformed.place
    assert type(malformed) is Malformed
    assert (place.message, place.version) == (message.__name__, version), str(malformed)
    assert place.field in _paths(message), str(malformed)
    assert 0 <= malformed.position <= len(data), str(malformed)
    assert malformed.reason


def _same(one: object, other: object) -> bool:
    """
    Equality, by which not-a-number is the same as itself.
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
