"""
Rows of a ledger are found by their timestamps.
"""

from hypothesis import example, given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.ledger.ledger import Row, Rows

BLOCK = 256  # rows whose largest timestamp is kept

_COUNTS = st.sampled_from([0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 600])
_DOINGS = st.tuples(st.sampled_from(["append", "extend", "lengthen", "drop", "correct"]), _COUNTS, st.integers(0, 5))


class Model:
    """
    Rows, and a list with the same content.
    """

    def __init__(self) -> None:
        self.rows, self.there, self.added = Rows(), list[Row](), 0

    def append(self, count: int, low: int) -> None:
        for row in self._new(count, low):
            self.rows.append(*row)

    def extend(self, count: int, low: int) -> None:
        other = Rows()
        for row in self._new(count, low):
            other.append(*row)
        self.rows.extend(other.columns)

    def _new(self, count: int, low: int) -> list[Row]:
        """
        Rows that differ from one another.
        """
        found = [Row(n, n + 1, n + 2, low + n * 7 % 40, 1) for n in range(self.added, self.added + count)]
        self.there += found
        self.added += count
        return found

    def lengthen(self, count: int, low: int) -> None:
        if self.there:
            last = self.there[-1]
            self.rows.lengthen(count, low * 20)
            self.there[-1] = last._replace(span=last.span + count, max_timestamp=max(last.max_timestamp, low * 20))

    def drop(self, count: int, low: int) -> None:
        self.rows.drop(count)
        del self.there[:count]

    def correct(self, count: int, low: int) -> None:
        if count < len(self.there):
            self.rows.correct(self.there[count], low)
            self.there[count] = self.there[count]._replace(max_timestamp=low)

    def check(self) -> None:
        rows, found = self.rows, self.there
        assert list(rows) == found
        assert len(rows) == len(found)
        largest = max((each.max_timestamp for each in found), default=None)
        highest = rows.highest()
        assert (None if highest is None else found[highest].max_timestamp) == largest
        for timestamp in range(-1, 121, 3):
            place = next((n for n, each in enumerate(found) if each.max_timestamp >= timestamp), None)
            assert rows.first_from(timestamp) == place


@given(st.lists(_DOINGS, max_size=8))
@example([("append", 600, 0), ("lengthen", 1, 5), ("append", 600, 1)])
@example([("append", 600, 0), ("drop", BLOCK + 1, 0), ("lengthen", 1, 5), ("extend", 600, 1)])
@example([("append", 600, 0), ("lengthen", 1, 5), ("correct", 599, 0), ("correct", BLOCK, 5)])
def test_rows_are_found(doings: list[tuple[str, int, int]]) -> None:
    """
    Rows are added at the end, dropped at the front, and corrected.
    """
    model = Model()
    for name, count, low in doings:
        getattr(model, name)(count, low)
        model.check()


def test_the_first_of_many_is_found_again_and_again() -> None:
    """
    One timestamp stands out, and the rows before it are dropped one by one, over the edges of blocks.
    """
    model = Model()
    model.append(2 * BLOCK, 0)
    model.lengthen(1, 5)
    for _ in range(2 * BLOCK + 1):
        model.drop(1, 0)
        assert model.rows.first_from(100) == (len(model.there) - 1 if model.there else None)
    model.append(3, 0)
    model.check()


def test_a_row_that_is_gone_or_has_grown_is_not_corrected() -> None:
    """
    Nor is the one in its place.
    """
    model = Model()
    model.append(3, 0)
    gone, *_, last = model.there
    model.drop(1, 0)
    model.lengthen(1, 0)
    for row in (gone, last, last._replace(kafka=9)):
        model.rows.correct(row, 90)
    model.check()


def test_rows_are_counted_from_both_ends() -> None:
    model = Model()
    model.append(5, 0)
    assert model.rows.at(-1) == model.there[-1]
    assert model.rows.at(0) == model.there[0]
