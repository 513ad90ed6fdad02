"""
One object of a chain: its bytes, its name, and how it is known that they are whole and follow what was before.

      0  u32        CRC-32C of all that follows
      4  u8         1, the format
      5  u8         0, or 1 for a fence, behind which nothing counts
      6  u16        0
      8  u64        its number
     16  16 bytes   its nonce: who asks whether an object is theirs knows it by this
     32  16 bytes   the nonce of its predecessor; zeros for the first
     48             the payload, to the end

It is called by its number in twenty digits, so that names are in the order of the numbers.
"""

import os
from struct import Struct, error
from typing import NamedTuple

from crc32c import crc32c

NONCE_BYTES = 16
NO_NONCE = bytes(NONCE_BYTES)

_HEADER = Struct(f">IBBHQ{NONCE_BYTES}s{NONCE_BYTES}s")
_CRC = Struct(">I")
_FORMAT = 1
_DIGITS = 20


class ChainDamaged(Exception):
    """
    An object of a chain cannot be read. That is no end of the chain: what it holds was promised.
    """


class ChainObject(NamedTuple):
    """
    An object, as it is or is to be.
    """

    number: int
    nonce: bytes
    previous: bytes
    payload: bytes
    is_fence: bool = False

    @property
    def name(self) -> str:
        """
        What it is called in its folder.
        """
        return name_of(self.number)

    def encoded(self) -> bytes:
        """
        Its bytes.
        """
        head = _HEADER.pack(0, _FORMAT, self.is_fence, 0, self.number, self.nonce, self.previous)
        covered = head[_CRC.size :]
        return b"".join((_CRC.pack(crc32c(self.payload, crc32c(covered))), covered, self.payload))


def decoded(data: bytes, path: str) -> ChainObject:
    """
    The object that these bytes are, found at this path; ChainDamaged where they are none, or that of another place.
    """
    try:
        crc, version, is_fence, _, number, nonce, previous = _HEADER.unpack_from(data)
    except error:
        raise ChainDamaged(f"{path} has {len(data)} bytes, which is less than any object of a chain has") from None
    if crc32c(memoryview(data)[_CRC.size :]) != crc:
        raise ChainDamaged(f"{path}: its {len(data)} bytes are not those that were written: the checksum is another")
    if version != _FORMAT:
        raise ChainDamaged(f"{path} has format {version}, which a later kgateway may know")
    if number != number_of(path.rpartition("/")[2]):
        raise ChainDamaged(f"{path} holds what belongs to {name_of(number)}")
    return ChainObject(number, nonce, previous, data[_HEADER.size :], bool(is_fence))


def new_nonce() -> bytes:
    """
    One that no other object has.
    """
    return os.urandom(NONCE_BYTES)


def name_of(number: int) -> str:
    """
    What the object with this number is called.
    """
    return f"{number:0{_DIGITS}d}"


def number_of(name: str) -> int | None:
    """
    The number of the object that is called so; `None` where it is something else.
    """
    return int(name) if len(name) == _DIGITS and name.isascii() and name.isdecimal() else None
