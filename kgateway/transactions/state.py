"""
What a coordinator knows of one transactional id.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

NO_ID = -1
NO_EPOCH = -1
NO_TIME = -1
LAST_EPOCH = (1 << 15) - 2  # that a producer is given: the one after it is left for the markers that fence it
EPOCH_EACH = 2  # the transaction version from which on each transaction has an epoch of its own (KIP-890)


class State(IntEnum):
    """
    Where a transactional id stands. The last two are never written: an id that is forgotten has a tombstone, and one
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
        """
        As administrators are told.
        """
        return "".join(word.capitalize() for word in self.name.split("_"))


class Identity(NamedTuple):
    """
    A producer id in one of its epochs.
    """

    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"producer {self.producer_id} in epoch {self.epoch}"


class Place(NamedTuple):
    """
    A partition that a transaction writes to.
    """

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """
    The last, or the only, transaction of an id, and its producer.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    updated_ms: int
    state: State = State.EMPTY
    places: frozenset[Place] = frozenset()  # when it is ending: those still without a marker
    started_ms: int = NO_TIME
    last_epoch: int = NO_EPOCH  # that the same producer had before; it is not written
    previous_id: int = NO_ID  # before the last change
    next_id: int = NO_ID  # once it is complete, for the epochs of the id are used up
    client_version: int = 0  # the transaction version that its client speaks

    @property
    def identity(self) -> Identity:
        """
        Who may go on with it.
        """
        return Identity(self.producer_id, self.epoch)

    @property
    def is_prepared(self) -> bool:
        """
        Whether it is decided how it ends, and not every partition knows.
        """
        return self.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """
        Whether every partition knows how it ended.
        """
        return self.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)

    @property
    def commits(self) -> bool:
        """
        How it ends, or ended.
        """
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    @property
    def is_exhausted(self) -> bool:
        """
        Whether the producer id has no epoch left to be given.
        """
        return self.epoch >= LAST_EPOCH
