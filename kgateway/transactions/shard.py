"""
The transactional ids that one state log has.

What is written counts when it is safe; until then whoever asks for the same id is told to ask again. So no partition
hears of an end, and no producer of an epoch, that a crash could undo.
"""

from collections.abc import Collection, Set
from functools import partial

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from kgateway.context import GatewayParts
from kgateway.coordinating.state_shard import PIECE, Ended, StateShard
from kgateway.coordinating.turns import by_turns, in_pieces, outcome_of, pause
from kgateway.interfaces import IStateLog, KeyValue
from kgateway.transactions.coding import decoded, encoded, tombstone
from kgateway.transactions.machine import completed, marked
from kgateway.transactions.markers import Ending
from kgateway.transactions.sending import Sender, pauses
from kgateway.transactions.state import NO_ID, Place, State, Transaction
from kgateway.wire.errors import ErrorCode, KafkaError


class TransactionShard(StateShard):
    """
    The coordinator of some transactional ids.
    """

    things = "transactional ids"

    def __init__(self, log: IStateLog, gateway: GatewayParts, sender: Sender, ended: Ended) -> None:
        super().__init__(log, gateway.clock, ended)
        self._broker = gateway.broker
        self._now_ms = gateway.now_ms
        self._sender = sender
        self._transactions: dict[str, Transaction] = {}  # as they are written and safe
        self._pending: dict[str, State] = {}  # what is written and not safe
        self._ending: dict[str, Deferred[None]] = {}  # those whose partitions are being told
        self._going_on: Deferred[None] = succeed(None)  # with those that were prepared when it was loaded

    @property
    def transactions(self) -> Collection[Transaction]:
        """
        All of them.
        """
        return self._transactions.values()

    def look(self, transactional_id: str) -> Transaction | None:
        """
        What is known of the id, whatever is about to change.
        """
        self.check()
        return self._transactions.get(transactional_id)

    def find(self, transactional_id: str) -> Transaction | None:
        """
        What is known of the id, for whoever will change it: CONCURRENT_TRANSACTIONS where somebody else does now.
        """
        found = self.look(transactional_id)
        if transactional_id in self._pending:
            reason = f"{transactional_id} is about to be {self._pending[transactional_id].label}"
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, reason)
        return found

    async def fresh_id(self, now: Transaction | None) -> int:
        """
        A new producer id, where the next step may need one.
        """
        return NO_ID if now and not now.is_exhausted else await self._broker.new_producer_id()

    def write(self, after: Transaction) -> Deferred[None] | None:
        """
        Let this be what is known of its id, once it is safe. If then an end is decided, the partitions are told.
        """
        return self._write(after.transactional_id, after.state, encoded(after), after)

    def forget(self, transactional_id: str) -> Deferred[None] | None:
        """
        Know nothing of the id any more.
        """
        return self._write(transactional_id, State.DEAD, tombstone(transactional_id), None)

    def _write(
        self, transactional_id: str, state: State, record: KeyValue, after: Transaction | None
    ) -> Deferred[None] | None:
        safe = self.append([record])
        if safe is None:
            self._become_so(transactional_id, after)
            return None
        self._pending[transactional_id] = state
        safe.addBoth(self._no_longer_pending, transactional_id)
        safe.addCallback(lambda _: self._become_so(transactional_id, after))
        return outcome_of(safe)

    def _no_longer_pending(self, outcome: Failure | None, transactional_id: str) -> Failure | None:
        self._pending.pop(transactional_id, None)
        return outcome

    def _become_so(self, transactional_id: str, after: Transaction | None) -> None:
        if not self.is_serving:
            return  # another coordinator finds it in the log
        if after is None:
            self._transactions.pop(transactional_id, None)
            return
        self._transactions[transactional_id] = after
        if after.is_prepared:
            self._end_in_partitions(after)

    def _end_in_partitions(self, prepared: Transaction) -> None:
        transactional_id = prepared.transactional_id
        ending = self._ending[transactional_id] = Deferred.fromCoroutine(self._complete(prepared))
        ending.addErrback(self._not_ended, transactional_id).addCallback(self._no_longer_ending, transactional_id)

    async def _complete(self, prepared: Transaction) -> None:
        """
        Tell the partitions, and then that they are told.
        """
        told = Ending(prepared.identity, prepared.commits, self.log.epoch, prepared.client_version)
        transactional_id = prepared.transactional_id
        await self._sender.send(prepared.places, told, partial(self._marked, transactional_id))
        for pause_s in pauses():
            try:
                written = self.write(completed(self._transactions[transactional_id], self._now_ms()))
                if written is not None:
                    await written
                return
            except KafkaError as error:
                self._log.warn("{id}: not known to be complete: {error}", id=transactional_id, error=error)
            await pause(self._clock, pause_s)

    def _marked(self, transactional_id: str, places: Set[Place]) -> None:
        self._transactions[transactional_id] = marked(self._transactions[transactional_id], places)

    def _no_longer_ending(self, _: None, transactional_id: str) -> None:
        self._ending.pop(transactional_id, None)

    def _not_ended(self, failure: Failure, transactional_id: str) -> None:
        if failure.check(CancelledError):
            return
        if failure.check(KafkaError):
            told = {"id": transactional_id, "error": failure.value}
            self._log.error("{id}: its transaction cannot be ended by this coordinator: {error}", **told)
        else:
            self._log.failure("{id}: its transaction is not ended", failure, id=transactional_id)

    def _count(self) -> int:
        return len(self._transactions)

    def _replay(self, key: bytes, value: bytes) -> bool:
        found = decoded(key, value)
        if found:
            self._transactions[found.transactional_id] = found
        return found is not None

    async def _replayed(self) -> None:
        """
        Whoever was about to end goes on with that, as soon as it can be written that they have.
        """
        prepared = [one for one in self._transactions.values() if one.is_prepared]
        if prepared:
            self._going_on = Deferred.fromCoroutine(self._go_on(prepared)).addErrback(self._not_gone_on)

    async def _go_on(self, prepared: list[Transaction]) -> None:
        await self.when_loaded()
        async for piece in by_turns(in_pieces(prepared, PIECE), self._clock):
            for transaction in piece:
                self._end_in_partitions(transaction)

    def _not_gone_on(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._log.failure("not all transactions that were prepared go on", failure)

    def _let_go(self) -> None:
        for ending in (*self._ending.values(), self._going_on):
            ending.cancel()
        self._transactions.clear()
