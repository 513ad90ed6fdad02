"""
Which transactions an administrator lists (KIP-664, KIP-994, KIP-1152).
"""

from collections.abc import Collection, Sequence

from kgateway.coordination.topic_patterns import check_pattern, matching
from kgateway.transactions.state import Transaction, TransactionState

_BY_LABEL = {state.label: state for state in TransactionState}


class TransactionFilter:
    """
    Passes transactions that match in every respect; what is empty, or below 0, matches all. A KafkaError if the pattern
    is not a regular expression.
    """

    def __init__(
        self,
        states: Sequence[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> None:
        self.unknown_states = [name for name in states if name not in _BY_LABEL]
        self._states = {_BY_LABEL[name] for name in states if name in _BY_LABEL} if states else set(TransactionState)
        self._producer_ids = frozenset(producer_ids)
        self._longer_than_ms = longer_than_ms
        self._pattern = pattern
        if pattern:
            check_pattern(pattern)

    def passing(self, transactions: Sequence[Transaction], now_ms: int) -> list[Transaction]:
        found = [transaction for transaction in transactions if self._fits(transaction, now_ms)]
        if not self._pattern:
            return found
        names = matching(self._pattern, (transaction.transactional_id for transaction in found), lambda _: True)
        return [transaction for transaction in found if transaction.transactional_id in names]

    def _fits(self, transaction: Transaction, now_ms: int) -> bool:
        return (
            transaction.state in self._states
            and (not self._producer_ids or transaction.producer_id in self._producer_ids)
            # In Kafka, too, an id that has begun nothing passes: it is as if it had begun before all time.
            and (self._longer_than_ms < 0 or now_ms - transaction.started_ms > self._longer_than_ms)
        )
