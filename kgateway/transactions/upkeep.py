"""
What happens to transactional ids when nobody does anything: a transaction that is open for too long is aborted, which
fences its producer, and an id that was not used for long is forgotten.
"""

from collections.abc import AsyncIterator, Callable, Iterable

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.rounds import Rounds
from kgateway.context import GatewayParts
from kgateway.coordinating.state_shard import PIECE
from kgateway.coordinating.turns import by_turns, in_pieces
from kgateway.transactions.machine import fenced, is_forgotten, is_late
from kgateway.transactions.shard import TransactionShard
from kgateway.transactions.state import Transaction
from kgateway.wire.errors import KafkaError


class Upkeep:
    """
    Looks through all of them now and then. What cannot be done is seen again the next time.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts, shards: Callable[[], Iterable[TransactionShard]]) -> None:
        self._clock = clock = gateway.clock
        self._now_ms = gateway.now_ms
        self._expiration_ms = gateway.settings.transactional_id_expiration_ms
        self._shards = shards
        late_ms = gateway.settings.transaction_timeout_check_interval_ms
        unused_ms = gateway.settings.transactional_id_check_interval_ms
        self._rounds = (
            Rounds(clock, late_ms, late_ms, self._abort_late, "not every late transaction could be aborted"),
            Rounds(clock, unused_ms, unused_ms, self._forget_unused, "not every unused id could be forgotten"),
        )

    def stop(self) -> None:
        """
        Leave everything as it is.
        """
        for rounds in self._rounds:
            rounds.stop()

    async def _abort_late(self) -> None:
        async for shard, transaction in self._all():
            if is_late(transaction, self._now_ms()):
                await self._abort(shard, transaction)

    async def _abort(self, shard: TransactionShard, late: Transaction) -> None:
        fresh_id, now_ms = await shard.fresh_id(late), self._now_ms()
        if self._try(shard, late, lambda: shard.write(fenced(late, fresh_id, now_ms))):
            self._log.warn(
                "{id}: its transaction is aborted, for it has been open for {open_ms} ms and may be for {timeout_ms}; "
                "{producer} can write no more",
                id=late.transactional_id,
                open_ms=now_ms - late.started_ms,
                timeout_ms=late.timeout_ms,
                producer=late.identity,
            )

    async def _forget_unused(self) -> None:
        async for shard, transaction in self._all():
            if is_forgotten(transaction, self._now_ms(), self._expiration_ms):
                self._forget(shard, transaction)

    def _forget(self, shard: TransactionShard, unused: Transaction) -> None:
        if self._try(shard, unused, lambda: shard.forget(unused.transactional_id)):
            unused_ms = self._now_ms() - unused.updated_ms
            told = {"id": unused.transactional_id, "unused_ms": unused_ms}
            self._log.info("{id}: forgotten, for nobody has used it for {unused_ms} ms", **told)

    async def _all(self) -> AsyncIterator[tuple[TransactionShard, Transaction]]:
        for shard in self._shards():
            async for piece in by_turns(in_pieces(list(shard.transactions), PIECE), self._clock):
                for transaction in piece:
                    yield shard, transaction

    def _try(self, shard: TransactionShard, seen: Transaction, write: Callable[[], Deferred[None] | None]) -> bool:
        """
        Whether it is written, if it still is as it was seen.
        """
        try:
            if shard.find(seen.transactional_id) is not seen:
                return False
            safe = write()
        except KafkaError as error:
            self._log.warn("{id}: left as it is for now: {error}", id=seen.transactional_id, error=error)
            return False
        if safe:
            safe.addErrback(lambda failure: self._log.failure("not written for good", failure))
        return True
