"""
Periodic rounds over all transactional ids: a transaction that is open for too long is aborted, which fences its
producer, and an id that was not used for long is forgotten.
"""

from collections.abc import AsyncIterator, Callable, Iterable

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.rounds import Rounds
from kgateway.context import GatewayParts
from kgateway.coordination.shard import PIECE
from kgateway.coordination.slicing import batched, by_turns
from kgateway.log_messages import (
    CANNOT_EXPIRE_TRANSACTION,
    LATE_ROUND_FAILED,
    TRANSACTION_ABORTED,
    TRANSACTION_WRITE_FAILED,
    UNUSED_ROUND_FAILED,
)
from kgateway.transactions.machine import is_expired, is_timed_out, prepare_fence
from kgateway.transactions.shard import TransactionShard
from kgateway.transactions.state import Transaction
from kgateway.wire.errors import KafkaError


class TransactionExpiry:
    """
    Runs the rounds. What fails is tried again in the next one.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts, shards: Callable[[], Iterable[TransactionShard]]) -> None:
        self._clock = clock = gateway.clock
        self._now_ms = gateway.now_ms
        self._expiration_ms = gateway.settings.transactional_id_expiration_ms
        self._shards = shards
        timeout_check_ms = gateway.settings.transaction_timeout_check_interval_ms
        expiry_check_ms = gateway.settings.transactional_id_check_interval_ms
        self._rounds = (
            Rounds(
                clock,
                timeout_check_ms,
                timeout_check_ms,
                self._abort_timed_out,
                LATE_ROUND_FAILED,
            ),
            Rounds(
                clock,
                expiry_check_ms,
                expiry_check_ms,
                self._expire_unused,
                UNUSED_ROUND_FAILED,
            ),
        )

    def stop(self) -> None:
        for rounds in self._rounds:
            rounds.stop()

    async def _abort_timed_out(self) -> None:
        async for shard, transaction in self._all():
            if is_timed_out(transaction, self._now_ms()):
                await self._abort(shard, transaction)

    async def _abort(self, shard: TransactionShard, late: Transaction) -> None:
        new_id, now_ms = await shard.new_producer_id(late), self._now_ms()
        if self._try(shard, late, lambda: shard.write(prepare_fence(late, new_id, now_ms))):
            self._log.warn(
                TRANSACTION_ABORTED,
                id=late.transactional_id,
                open_ms=now_ms - late.started_ms,
                timeout_ms=late.timeout_ms,
                producer=late.producer,
            )

    async def _expire_unused(self) -> None:
        async for shard, transaction in self._all():
            if is_expired(transaction, self._now_ms(), self._expiration_ms):
                self._expire(shard, transaction)

    def _expire(self, shard: TransactionShard, unused: Transaction) -> None:
        if self._try(shard, unused, lambda: shard.delete(unused.transactional_id)):
            unused_ms = self._now_ms() - unused.updated_ms
            self._log.info("{id}: expired, unused for {unused_ms} ms", id=unused.transactional_id, unused_ms=unused_ms)

    async def _all(self) -> AsyncIterator[tuple[TransactionShard, Transaction]]:
        for shard in self._shards():
            async for piece in by_turns(batched(list(shard.transactions), PIECE), self._clock):
                for transaction in piece:
                    yield shard, transaction

    def _try(self, shard: TransactionShard, seen: Transaction, write: Callable[[], Deferred[None] | None]) -> bool:
        """
        Write if the transaction is still as it was seen. Returns whether it was.
        """
        try:
            if shard.get_for_update(seen.transactional_id) is not seen:
                return False
            committed = write()
        except KafkaError as error:
            self._log.warn(CANNOT_EXPIRE_TRANSACTION, id=seen.transactional_id, error=error)
            return False
        if committed:
            committed.addErrback(lambda failure: self._log.failure(TRANSACTION_WRITE_FAILED, failure))
        return True
