"""
How much and how long.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Of one channel.
    """

    message_bytes_max: int = 1 << 30  # either way
    window_bytes: int = 16 << 20  # what a peer may send on one stream, and on all, before it is told to go on
    connect_s: float = 10  # until the peer has said that it speaks HTTP/2
    silent_s: float = 60  # of a peer that has calls to answer; then it is asked whether it is there
    ping_answer_s: float = 20
    close_s: float = 5  # until what is written has left
