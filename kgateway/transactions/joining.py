"""
Lets batches of transactions into partitions: one that is the first of its transaction there needs the coordinator's
word that the partition is part of it (KIP-890). So no transaction begins somewhere that its coordinator knows nothing
of, and nobody would ever end.
"""

from collections.abc import Set
from struct import Struct
from typing import NamedTuple

from kgateway.interfaces import IPartition
from kgateway.records.batch import HEADER_SIZE, TRANSACTIONAL_BIT
from kgateway.transactions.state import Identity, Place
from kgateway.transactions.transactions import Transactions
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

_WHO = Struct(">h20xqh")  # attributes, producer id and epoch
_WHO_AT = 21

_NOT_NOW = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.BROKER_NOT_AVAILABLE,
}


class Dialect(NamedTuple):
    """
    What a client does itself in this version of a request, and what it understands.
    """

    adds: bool  # it does not: the partition is added for it
    knows_abortable: bool
    later: ErrorCode  # by which it knows to try again, and not to look for another leader

    def told(self, code: ErrorCode) -> ErrorCode:
        """
        What the coordinator answers, in words that the client understands.
        """
        if code in _NOT_NOW or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not self.adds):
            return self.later
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and not self.knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return code


def beginner(records: Buffer | None, partition: IPartition) -> Identity | None:
    """
    Whose transaction begins in this partition with a batch, if one may.
    """
    if records is None or len(records) < HEADER_SIZE:
        return None
    attributes, producer_id, epoch = _WHO.unpack_from(records, _WHO_AT)
    if not attributes & TRANSACTIONAL_BIT or partition.producers().has_open(producer_id, epoch):
        return None
    return Identity(producer_id, epoch)


async def join(
    transactions: Transactions, transactional_id: str, who: Identity, places: Set[Place], dialect: Dialect
) -> None:
    """
    Have the coordinator say that the partitions are part of the producer's transaction; a KafkaError where one is not.
    """
    try:
        await _join(transactions, transactional_id, who, places, dialect)
    except KafkaError as error:
        raise KafkaError(dialect.told(error.code), error.message) from None


async def _join(
    transactions: Transactions, transactional_id: str, who: Identity, places: Set[Place], dialect: Dialect
) -> None:
    codes = await transactions.join(transactional_id, who, places, adds=dialect.adds)
    for place, code in codes.items():
        if code is not ErrorCode.NONE:
            raise KafkaError(code, f"{place.topic}-{place.partition} is no part of the transaction of {who}")
