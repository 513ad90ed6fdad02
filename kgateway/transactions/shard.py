"""
The transactional ids that one state log has.

A change counts when it is committed; until then every other request for the id is answered CONCURRENT_TRANSACTIONS. So
no partition hears of an end, and no producer of an epoch, that a crash could undo.
"""

from collections.abc import Collection, Set
from functools import partial

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from kgateway.context import GatewayParts
from kgateway.coordination.shard import PIECE, CoordinatorShard, Ended
from kgateway.coordination.slicing import batched, by_turns, pause, shield
from kgateway.interfaces import IStateLog, KeyValue
from kgateway.log_messages import (
    CANNOT_END_TRANSACTION,
    CANNOT_RESUME_TRANSACTIONS,
    COMPLETION_NOT_WRITTEN,
    TRANSACTION_NOT_ENDED,
)
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.machine import complete, remove_marked
from kgateway.transactions.markers import MarkerEntry, MarkerSender, pauses
from kgateway.transactions.records import decoded, encoded, tombstone
from kgateway.transactions.state import NO_ID, Transaction, TransactionState
from kgateway.wire.errors import ErrorCode, KafkaError


class TransactionShard(CoordinatorShard):
    noun = "transactional ids"

    def __init__(self, log: IStateLog, gateway: GatewayParts, markers: MarkerSender, ended: Ended) -> None:
        super().__init__(log, gateway.clock, ended)
        self._broker = gateway.broker
        self._now_ms = gateway.now_ms
        self._markers = markers
        self._transactions: dict[str, Transaction] = {}  # as they are committed
        self._pending: dict[str, TransactionState] = {}  # the states that are written and not committed yet
        self._endings: dict[str, Deferred[None]] = {}  # those whose partitions are being marked
        self._resuming: Deferred[None] = succeed(None)  # the ends that were prepared when it was loaded

    @property
    def transactions(self) -> Collection[Transaction]:
        return self._transactions.values()

    def get(self, transactional_id: str) -> Transaction | None:
        """
        What is committed of the id, even if a change is pending.
        """
        self.check()
        return self._transactions.get(transactional_id)

    def get_for_update(self, transactional_id: str) -> Transaction | None:
        """
        What is committed of the id, for a caller that will change it. CONCURRENT_TRANSACTIONS while another change is
        pending.
        """
        found = self.get(transactional_id)
        if transactional_id in self._pending:
            reason = f"{transactional_id} is about to be {self._pending[transactional_id].label}"
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, reason)
        return found

    async def new_producer_id(self, now: Transaction | None) -> int:
        """
        A new producer id, if the next step may need one.
        """
        return NO_ID if now and not now.is_exhausted else await self._broker.new_producer_id()

    def write(self, after: Transaction) -> Deferred[None] | None:
        """
        Make this the state of its id once it is committed. A prepared end is then sent to the partitions.
        """
        return self._write(after.transactional_id, after.state, encoded(after), after)

    def delete(self, transactional_id: str) -> Deferred[None] | None:
        return self._write(transactional_id, TransactionState.DEAD, tombstone(transactional_id), None)

    def _write(
        self, transactional_id: str, state: TransactionState, record: KeyValue, after: Transaction | None
    ) -> Deferred[None] | None:
        committed = self.append([record])
        if committed is None:
            self._apply(transactional_id, after)
            return None
        self._pending[transactional_id] = state
        committed.addBoth(self._no_longer_pending, transactional_id)
        committed.addCallback(lambda _: self._apply(transactional_id, after))
        return shield(committed)

    def _no_longer_pending(self, outcome: Failure | None, transactional_id: str) -> Failure | None:
        self._pending.pop(transactional_id, None)
        return outcome

    def _apply(self, transactional_id: str, after: Transaction | None) -> None:
        if not self.is_serving:
            return  # the next coordinator reads it from the log
        if after is None:
            self._transactions.pop(transactional_id, None)
            return
        self._transactions[transactional_id] = after
        if after.is_prepared:
            self._end_in_partitions(after)

    def _end_in_partitions(self, prepared: Transaction) -> None:
        transactional_id = prepared.transactional_id
        ending = self._endings[transactional_id] = Deferred.fromCoroutine(self._mark_and_complete(prepared))
        ending.addErrback(self._not_ended, transactional_id).addCallback(self._ended_one, transactional_id)

    async def _mark_and_complete(self, prepared: Transaction) -> None:
        marker = MarkerEntry(prepared.producer, prepared.commits, self.log.epoch, prepared.client_version)
        transactional_id = prepared.transactional_id
        await self._markers.send(prepared.partitions, marker, partial(self._remove_marked, transactional_id))
        for pause_s in pauses():
            try:
                written = self.write(complete(self._transactions[transactional_id], self._now_ms()))
                if written is not None:
                    await written
                return
            except KafkaError as error:
                self._log.warn(
                    COMPLETION_NOT_WRITTEN,
                    id=transactional_id,
                    error=error,
                )
            await pause(self._clock, pause_s)

    def _remove_marked(self, transactional_id: str, partitions: Set[TopicPartition]) -> None:
        self._transactions[transactional_id] = remove_marked(self._transactions[transactional_id], partitions)

    def _ended_one(self, _: None, transactional_id: str) -> None:
        self._endings.pop(transactional_id, None)

    def _not_ended(self, failure: Failure, transactional_id: str) -> None:
        if failure.check(CancelledError):
            return
        if failure.check(KafkaError):
            self._log.error(CANNOT_END_TRANSACTION, id=transactional_id, error=failure.value)
        else:
            self._log.failure(TRANSACTION_NOT_ENDED, failure, id=transactional_id)

    def _count(self) -> int:
        return len(self._transactions)

    def _replay(self, key: bytes, value: bytes) -> bool:
        found = decoded(key, value)
        if found:
            self._transactions[found.transactional_id] = found
        return found is not None

    async def _replayed(self) -> None:
        """
        Continue the ends that were prepared, as soon as the shard can write that they are complete.
        """
        prepared = [transaction for transaction in self._transactions.values() if transaction.is_prepared]
        if prepared:
            self._resuming = Deferred.fromCoroutine(self._resume(prepared)).addErrback(self._not_resumed)

    async def _resume(self, prepared: list[Transaction]) -> None:
        await self.when_loaded()
        async for piece in by_turns(batched(prepared, PIECE), self._clock):
            for transaction in piece:
                self._end_in_partitions(transaction)

    def _not_resumed(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._log.failure(CANNOT_RESUME_TRANSACTIONS, failure)

    def _clear(self) -> None:
        for ending in (*self._endings.values(), self._resuming):
            ending.cancel()
        self._transactions.clear()
