"""
Rows of a ledger are found by their numbers and timestamps.
"""

from hypothesis import example, given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.ledger.ledger import Row, Rows

BLOCK = 256  # rows whose largest timestamp is kept

_COUNTS = st.sampled_from([0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 600])
_DOINGS = st.tuples(st.sampled_from(["append", "extend", "lengthen", "drop", "cut"]), _COUNTS, st.integers(0, 5))


def row(number: int, timestamp: int) -> Row:
    """
    A row that differs from any other.
    """
    return Row(number, number + 1, number + 2, timestamp, 1)


class Model:
    """
    Rows, and a dictionary with the same content.
    """

    def __init__(self, first: int) -> None:
        self.rows, self.there, self.end = Rows(first), dict[int, Row](), first

    def append(self, count: int, low: int) -> None:
        for number in range(self.end, self.end + count):
            self.there[number] = row(number, low + (number * 7) % 40)
            self.rows.append(*self.there[number])
        self.end += count

    def extend(self, count: int, low: int) -> None:
        other = Model(self.end)
        other.append(count, low)
        self.rows.extend(other.rows.take(self.end, other.end))
        self.there |= other.there
        self.end = other.end

    def lengthen(self, count: int, low: int) -> None:
        if self.there:
            last = self.there[self.end - 1]
            self.rows.lengthen(count, low * 20)
            self.there[self.end - 1] = last._replace(
                span=last.span + count, max_timestamp=max(last.max_timestamp, low * 20)
            )

    def drop(self, count: int, low: int) -> None:
        first = min(self.rows.first + count, self.end)
        self.rows.drop(first)
        self.there = {number: row for number, row in self.there.items() if number >= first}

    def cut(self, count: int, low: int) -> None:
        self.end = max(self.end - count, self.rows.first)
        self.rows.cut(self.end)
        self.there = {number: row for number, row in self.there.items() if number < self.end}

    def check(self) -> None:
        rows, found = self.rows, list(self.there.values())
        assert dict(rows.numbered()) == self.there
        assert (len(rows), rows.end) == (len(self.there), self.end)
        for timestamp in range(-1, 121, 3):
            place = next((n for n, each in enumerate(found) if each.max_timestamp >= timestamp), None)
            assert rows.first_from(timestamp) == place


@given(st.sampled_from([0, 1, BLOCK - 1, BLOCK, 1000]), st.lists(_DOINGS, max_size=8))
@example(1000, [("append", 600, 0), ("lengthen", 1, 5), ("cut", 1, 0), ("append", 600, 1), ("cut", BLOCK + 1, 0)])
@example(BLOCK - 1, [("append", 600, 0), ("drop", 300, 0), ("lengthen", 1, 5), ("cut", 2, 0), ("extend", 600, 1)])
def test_rows_are_found(first: int, doings: list[tuple[str, int, int]]) -> None:
    """
    Rows are added and cut off at the end, and dropped at the front.
    """
    model = Model(first)
    for name, count, low in doings:
        getattr(model, name)(count, low)
        model.check()


def test_the_first_of_many_is_found_again_and_again() -> None:
    """
    One timestamp stands out, and the rows before it are dropped one by one, over the edges of blocks.
    """
    model = Model(BLOCK - 3)
    model.append(2 * BLOCK, 0)
    model.lengthen(1, 5)
    for _ in range(2 * BLOCK + 1):
        model.drop(1, 0)
        assert model.rows.first_from(100) == (len(model.there) - 1 if model.there else None)
    model.append(3, 0)
    model.check()


def test_rows_that_are_cut_off_are_not_found() -> None:
    """
    Their timestamps are not found either, at any block edge.
    """
    for count in (BLOCK - 1, BLOCK, BLOCK + 1):
        model = Model(0)
        model.append(count, 0)
        model.lengthen(1, 5)
        model.cut(1, 0)
        model.check()
        model.extend(1, 4)
        model.check()


def test_some_rows_are_taken() -> None:
    """
    They are taken by number, column by column.
    """
    model = Model(10)
    model.append(5, 0)
    taken = model.rows.take(12, 14)
    assert [Row(*each) for each in zip(*taken, strict=True)] == [model.there[12], model.there[13]]
    assert model.rows.at(-1) == model.there[14]
    assert model.rows.at(0) == model.there[10]
