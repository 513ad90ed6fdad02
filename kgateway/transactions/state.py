"""
What a coordinator knows of one transactional id.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kgateway.topic_partition import TopicPartition

NO_ID = -1
NO_EPOCH = -1
NO_TIME = -1
LAST_EPOCH = (1 << 15) - 2  # that a producer is given: the one after it is left for the markers that fence it
EPOCH_EACH = 2  # the transaction version from which on each transaction has an epoch of its own (KIP-890)


class TransactionState(IntEnum):
    """
    The states of a transactional id. The last two are never written: an id that is forgotten has a tombstone, and one
    that is fenced is about to abort at once.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"producer {self.producer_id} in epoch {self.epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """
    What the coordinator knows of one transactional id: its producer, and its only or last transaction.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    updated_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()  # once its end is prepared, those without a marker
    started_ms: int = NO_TIME
    last_epoch: int = NO_EPOCH  # that the same producer had before; it is not written
    previous_id: int = NO_ID  # before the last change
    next_id: int = NO_ID  # once it is complete, if the epochs of the id are used up
    client_version: int = 0  # the transaction version that its client speaks

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.epoch)

    @property
    def is_prepared(self) -> bool:
        """
        Whether its end is decided, and some partitions have no marker yet.
        """
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """
        Whether every partition has its marker.
        """
        return self.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

    @property
    def commits(self) -> bool:
        """
        Whether it ends, or ended, with a commit.
        """
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    @property
    def is_exhausted(self) -> bool:
        """
        Whether the producer id has no epoch left to be given.
        """
        return self.epoch >= LAST_EPOCH
