"""
Kafka's UUIDs: sixteen bytes, shown as URL-safe base64 without padding.

The class is a subclass of `bytes` and not `uuid.UUID`, because topic ids key the hot dictionaries of a broker, and
`bytes` hash and compare in C.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from secrets import token_bytes
from typing import Self

SIZE = 16


class Uuid(bytes):
    __slots__ = ()

    def __new__(cls, raw: Iterable[int]) -> Self:
        uuid = super().__new__(cls, raw)
        if len(uuid) != SIZE:
            raise ValueError(f"a UUID has {SIZE} bytes, not {len(uuid)}")
        return uuid

    @classmethod
    def random(cls) -> Self:
        """
        A random id. None begins with a dash, which command lines would take for an option.
        """
        while True:
            drawn = cls(token_bytes(SIZE))
            if not str(drawn).startswith("-") and drawn not in (ZERO, ONE):
                return drawn

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        The id that `str()` shows as this text.
        """
        try:
            raw = urlsafe_b64decode(text + "==")
        except ValueError:
            raw = b""
        if len(raw) != SIZE or len(text) != 22:
            raise ValueError(f"not a Kafka UUID (22 letters of URL-safe base64): {text!r}")
        return cls(raw)

    def __str__(self) -> str:
        return urlsafe_b64encode(self)[:22].decode()

    def __repr__(self) -> str:
        return f"Uuid.parse({str(self)!r})"


ZERO = Uuid(bytes(SIZE))
ONE = Uuid(bytes(SIZE - 1) + b"\1")
