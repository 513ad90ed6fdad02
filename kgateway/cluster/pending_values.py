"""
Values written in transactions that have not ended, in the order in which they count if they are committed.

A value counts from its own offset on, wherever the marker is: a value that was written later for the same key, in the
transaction of another producer that has ended or in none, is kept.
"""

from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _PendingValue(NamedTuple, Generic[V]):
    """
    A value and its number in the order of writing; without a value if it was superseded.
    """

    number: int
    values: tuple[V, ...]


class PendingValues(Generic[K, V]):
    def __init__(self) -> None:
        self._by_producer: dict[int, dict[K, _PendingValue[V]]] = {}
        self._numbers = count()

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def __iter__(self) -> Iterator[tuple[int, K, V | None]]:
        """
        All values with their producers, in the order of writing; `None` for a superseded one.
        """
        everything = self._by_producer.items()
        found = [(written, producer_id, key) for producer_id, rows in everything for key, written in rows.items()]
        for written, producer_id, key in sorted(found, key=lambda row: row[0].number):
            yield producer_id, key, next(iter(written.values), None)

    def put(self, producer_id: int, key: K, value: V | None) -> None:
        """
        Add a value written in the transaction of this producer, or `None` for one that was superseded.
        """
        values = () if value is None else (value,)
        self._by_producer.setdefault(producer_id, {})[key] = _PendingValue(next(self._numbers), values)

    def has(self, key: K) -> bool:
        return any(key in rows for rows in self._by_producer.values())

    def keys(self) -> Iterator[K]:
        return (key for rows in self._by_producer.values() for key in rows)

    def overtake(self, key: K) -> None:
        """
        Supersede the pending values of this key, because it was written outside transactions.
        """
        for rows in self._by_producer.values():
            if key in rows:
                rows[key] = _PendingValue(rows[key].number, ())

    def forget(self, key: K) -> None:
        for rows in self._by_producer.values():
            rows.pop(key, None)

    def end(self, producer_id: int, *, commits: bool) -> list[tuple[K, V]]:
        """
        End the transaction of this producer. Returns the values that count from now on.
        """
        rows = self._by_producer.pop(producer_id, {})
        counting = [(key, value) for key, written in rows.items() for value in written.values] if commits else []
        for key, _ in counting:
            self._overtake_before(rows[key].number, key)
        return counting

    def _overtake_before(self, number: int, key: K) -> None:
        for rows in self._by_producer.values():
            if key in rows and rows[key].number < number:
                rows[key] = _PendingValue(rows[key].number, ())
