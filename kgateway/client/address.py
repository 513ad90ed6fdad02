"""
Where a server is.
"""

from typing import NamedTuple, Self

_PORT_MAX = 65_535


class Address(NamedTuple):
    """
    HOST:PORT; an IPv6 address has brackets.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        The address that is written so; ValueError where none is.
        """
        host, colon, port = text.strip().rpartition(":")
        is_bare_v6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
        if not colon or not host or is_bare_v6 or not port.isdecimal() or not 0 < int(port) <= _PORT_MAX:
            raise ValueError(f"{text!r} is no HOST:PORT")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
