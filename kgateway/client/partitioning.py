"""
Which partition a record goes to: of one with a key as Kafka's Java client decides it, so that both put it to the same.
"""

from functools import lru_cache

_SEED, _FACTOR, _SHIFT = 0x9747B28C, 0x5BD1E995, 24
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_REMEMBERED = 1 << 16  # keys come again, and hashing them is slow in Python


def murmur2(data: bytes) -> int:
    """
    The hash, as the 32 bits it is.
    """
    length = len(data)
    hashed = _SEED ^ length
    whole = length & ~3
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> _SHIFT) * _FACTOR & _MASK
        hashed = (hashed * _FACTOR & _MASK) ^ word
    if length > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _MASK
    return hashed ^ hashed >> 15


@lru_cache(maxsize=_REMEMBERED)
def partition_of(key: bytes, partitions: int) -> int:
    """
    The partition of a key.
    """
    return (murmur2(key) & _POSITIVE) % partitions
