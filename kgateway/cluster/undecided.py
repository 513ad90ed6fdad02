"""
What was written in transactions that have not ended, in the order in which it counts if they are committed.

It counts from its own place in the log on, wherever the marker is: what was written later over the same key, in the
transaction of another producer that has ended or in none, stays.
"""

from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Written(NamedTuple, Generic[V]):
    """
    A value, and after how many others it came; none where it was overtaken.
    """

    number: int
    values: tuple[V, ...]


class Undecided(Generic[K, V]):
    """
    Values by producer and key.
    """

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[K, _Written[V]]] = {}
        self._numbers = count()

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def __iter__(self) -> Iterator[tuple[int, K, V | None]]:
        """
        All of it, with the producer, in the order in which it was written; `None` in the place of what was overtaken.
        """
        everything = self._by_producer.items()
        found = [(written, producer_id, key) for producer_id, rows in everything for key, written in rows.items()]
        for written, producer_id, key in sorted(found, key=lambda row: row[0].number):
            yield producer_id, key, next(iter(written.values), None)

    def put(self, producer_id: int, key: K, value: V | None) -> None:
        """
        This was written in the transaction of this producer; or something that was overtaken.
        """
        values = () if value is None else (value,)
        self._by_producer.setdefault(producer_id, {})[key] = _Written(next(self._numbers), values)

    def has(self, key: K) -> bool:
        """
        Whether a transaction has written to the key.
        """
        return any(key in rows for rows in self._by_producer.values())

    def keys(self) -> Iterator[K]:
        """
        All that they have written to.
        """
        return (key for rows in self._by_producer.values() for key in rows)

    def overtake(self, key: K) -> None:
        """
        This key was written, and that counts: of what is undecided nothing will.
        """
        for rows in self._by_producer.values():
            if key in rows:
                rows[key] = _Written(rows[key].number, ())

    def forget(self, key: K) -> None:
        """
        Nobody has written to this key.
        """
        for rows in self._by_producer.values():
            rows.pop(key, None)

    def end(self, producer_id: int, *, commits: bool) -> list[tuple[K, V]]:
        """
        The transaction of this producer has ended; what counts of it from now on.
        """
        rows = self._by_producer.pop(producer_id, {})
        counting = [(key, value) for key, written in rows.items() for value in written.values] if commits else []
        for key, _ in counting:
            self._overtake_before(rows[key].number, key)
        return counting

    def _overtake_before(self, number: int, key: K) -> None:
        for rows in self._by_producer.values():
            if key in rows and rows[key].number < number:
                rows[key] = _Written(rows[key].number, ())
