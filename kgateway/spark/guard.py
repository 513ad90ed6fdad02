"""
The place where a stream becomes exactly once: what knows whether a batch was written already.

A batch of a stream that was cut off is tried again with the same number. Who writes its records and its number in one
step, as a transaction of Kafka can, may skip it then. Where there is no such step, each batch is written as often as it
is tried: at least once.
"""

from typing import NamedTuple, Protocol


class BatchId(NamedTuple):
    """
    A batch of a stream.
    """

    query: str
    number: int


class BatchGuard(Protocol):
    """
    Knows which batches were written.
    """

    def is_written(self, batch: BatchId) -> bool:
        """
        Whether all of it is in the topics.
        """

    def written(self, batch: BatchId) -> None:
        """
        All tasks have written what is theirs.
        """


class AtLeastOnce:
    """
    Knows of none.
    """

    def is_written(self, batch: BatchId) -> bool:
        return False

    def written(self, batch: BatchId) -> None:
        pass
