"""
What every client is asked, in one way: an adapter says it in the words of its library.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from kgateway.records.compression import Codec
from kgateway.records.record import Record

PATIENCE_S = 30
REQUEST_BYTES_MAX = 10 << 20  # what clients let through; the gateway's bound is lower

BEGINNING = -2
END = -1

Topics = dict[str, int]  # the names, with the number of partitions


class Refused(Exception):
    """
    The gateway's answer, as the client told it, was this error of Kafka's.
    """

    def __init__(self, code: int, error: object) -> None:
        super().__init__(code, error)
        self.code = code


@dataclass(frozen=True)
class Sending:
    """
    How a producer is set up.
    """

    codec: Codec = Codec.NONE
    acks: int = -1
    idempotent: bool = False
    batch_bytes: int | None = None  # where not given, what the library thinks best


PLAIN = Sending()


class Reader(Protocol):
    """
    A consumer without a group, of one topic.
    """

    def assign(self, starts: Mapping[int, int]) -> None:
        """
        Read these partitions from an offset, the BEGINNING or the END, and know by the return where the END was.
        """

    def seek(self, partition: int, offset: int) -> None:
        """
        Go on at another offset.
        """

    def take(self, count: int) -> list[tuple[int, Record]]:
        """
        The next records, each with its partition.
        """

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        """
        Where the records of that time or later begin.
        """

    def watermarks(self, partition: int) -> tuple[int, int]:
        """
        The first offset, and the one that the next record gets.
        """


class Client(Protocol):
    """
    A client library at work on one gateway. Refusals of the gateway are raised as `Refused`.
    """

    def send(self, topic: str, rows: Sequence[Record], partition: int | None = 0, how: Sending = PLAIN) -> list[int]:
        """
        Produce, where no partition is given to one of the client's choice; the offsets that the client is told. With
        acks=0 it is told none.
        """

    def reader(self, topic: str) -> AbstractContextManager[Reader]:
        """
        A consumer, which starts at the beginning where its offset is not in the log.
        """

    def topics(self) -> Topics:
        """
        What is there.
        """

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """
        Make a topic.
        """

    def delete_topic(self, topic: str) -> None:
        """
        Remove a topic.
        """

    def add_partitions(self, topic: str, total: int) -> None:
        """
        Let the topic have that many.
        """

    def config(self, topic: str) -> dict[str, str | None]:
        """
        The topic's configs.
        """


Connect = Callable[[str], Client]  # to a bootstrap address
