"""
How a call begins: the headers of its request.
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

Metadata = Sequence[tuple[str, str]]

USER_AGENT = "kgateway"
_TIMEOUT_MAX = 99_999_999  # eight digits, says gRPC


class Request(NamedTuple):
    """
    Of one call. The deadline is in the seconds of the clock.
    """

    path: str
    metadata: Metadata
    deadline: float | None

    def headers(self, scheme: str, authority: str, now: float) -> list[tuple[str, str]]:
        """
        What the peer is told when the call starts.
        """
        timeout = [] if self.deadline is None else [("grpc-timeout", timeout_text(self.deadline - now))]
        return [
            (":method", "POST"),
            (":scheme", scheme),
            (":path", self.path),
            (":authority", authority),
            *timeout,
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", USER_AGENT),
            ("grpc-accept-encoding", "identity"),
            *self.metadata,
        ]


def timeout_text(seconds: float) -> str:
    """
    As gRPC writes it. Of equal timeouts the texts are equal, so that HTTP/2 sends them once.
    """
    milliseconds = max(1, ceil(seconds * 1000 - 0.5))
    return f"{milliseconds}m" if milliseconds <= _TIMEOUT_MAX else f"{min(milliseconds // 1000, _TIMEOUT_MAX)}S"
