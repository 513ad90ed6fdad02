"""
The interface of all clients under test: an adapter translates it to each library.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from kgateway.records.compression import Codec
from kgateway.records.record import Record

PATIENCE_S = 30
REQUEST_BYTES_MAX = 10 << 20  # the clients' own limit; the gateway's is lower

BEGINNING = -2
END = -1

Topics = dict[str, int]  # names and numbers of partitions


class Refused(Exception):
    """
    The client reported that the gateway answered with this error of Kafka's.
    """

    def __init__(self, code: int, error: object) -> None:
        super().__init__(code, error)
        self.code = code


@dataclass(frozen=True)
class Sending:
    """
    The settings of a producer.
    """

    codec: Codec = Codec.NONE
    acks: int = -1
    idempotent: bool = False
    batch_bytes: int | None = None  # the library's own choice if not given


PLAIN = Sending()


class Reader(Protocol):
    """
    A consumer of one topic, without a group.
    """

    def assign(self, starts: Mapping[int, int]) -> None:
        """
        Read these partitions from an offset, the BEGINNING or the END; the position of the END is known on return.
        """

    def seek(self, partition: int, offset: int) -> None:
        """
        Continue at another offset.
        """

    def take(self, count: int) -> list[tuple[int, Record]]:
        """
        The next records, each with its partition.
        """

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        """
        The offset of the first record at or after that time.
        """

    def watermarks(self, partition: int) -> tuple[int, int]:
        """
        The first offset, and that of the next record.
        """


class Client(Protocol):
    """
    A client library connected to a gateway. It raises refusals of the gateway as `Refused`.
    """

    def send(self, topic: str, rows: Sequence[Record], partition: int | None = 0, how: Sending = PLAIN) -> list[int]:
        """
        Produce, to partitions of the client's choice if none is given; returns the offsets that the client learns.
        With acks=0 there are none.
        """

    def reader(self, topic: str) -> AbstractContextManager[Reader]:
        """
        A consumer that starts at the beginning if its offset is not in the log.
        """

    def topics(self) -> Topics:
        """
        The existing topics.
        """

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def add_partitions(self, topic: str, total: int) -> None:
        """
        Increase the number of the topic's partitions to a total.
        """

    def config(self, topic: str) -> dict[str, str | None]: ...


Connect = Callable[[str], Client]  # bootstrap address -> client
