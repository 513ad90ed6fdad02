"""
The lz4 frames inside messages of magic 0 (KAFKA-3160).

A frame begins with a magic number, two bytes of flags, an optional content size, and a check byte: a byte of the XXH32
of what stands between the magic number and the check byte. Kafka included the magic number in the hash, and its clients
came to rely on that: present clients write the wrong byte, and ignore it when they read, in messages of magic 0 alone.
"""

from kgateway.wire.types import Buffer

_FLAGS_AT = 4
_CONTENT_SIZE_FLAG = 0x08
_PRIMES = (2_654_435_761, 2_246_822_519, 3_266_489_917, 668_265_263, 374_761_393)
_MASK = (1 << 32) - 1


def broken(frame: Buffer) -> bytes:
    """
    The frame with the check byte that readers of magic 0 expect.
    """
    return _checked(frame, 0)


def mended(frame: Buffer) -> bytes:
    """
    The frame with the right check byte; bytes too short for a frame are returned as they are.
    """
    return _checked(frame, _FLAGS_AT)


def _checked(frame: Buffer, start: int) -> bytes:
    data = bytes(frame)
    if len(data) <= _FLAGS_AT:
        return data
    place = _FLAGS_AT + (10 if data[_FLAGS_AT] & _CONTENT_SIZE_FLAG else 2)
    check = _short_xxh32(data[start:place]) >> 8 & 0xFF
    return b"".join((data[:place], bytes((check,)), data[place + 1 :])) if place < len(data) else data


def _short_xxh32(data: bytes) -> int:
    """
    XXH32 of fewer than 16 bytes, with seed 0.
    """
    whole = len(data) // 4 * 4
    mixed = _PRIMES[4] + len(data)
    for pos in range(0, whole, 4):
        word = int.from_bytes(data[pos : pos + 4], "little")
        mixed = _rotated(mixed + word * _PRIMES[2], 17) * _PRIMES[3]
    for byte in data[whole:]:
        mixed = _rotated(mixed + byte * _PRIMES[4], 11) * _PRIMES[0]
    mixed &= _MASK
    mixed = (mixed ^ mixed >> 15) * _PRIMES[1] & _MASK
    mixed = (mixed ^ mixed >> 13) * _PRIMES[2] & _MASK
    return mixed ^ mixed >> 16


def _rotated(number: int, bits: int) -> int:
    number &= _MASK
    return (number << bits | number >> 32 - bits) & _MASK
