"""
The cache of a log's newest batches, compared with a list.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.partition.batch_cache import BatchCache

PLENTY = 1 << 20


def filled(*sizes: int, start: int = 0) -> BatchCache[bytes]:
    """
    A cache of batches with as many bytes as offsets, each batch of a byte of its own.
    """
    tail = BatchCache[bytes](start)
    for number, size in enumerate(sizes):
        tail.add(bytes([number]) * size, tail.end, tail.end + size)
    return tail


def read(
    tail: BatchCache[bytes], offset: int, max_bytes: int = PLENTY, *, stop: int = PLENTY, one: bool = False
) -> list[int]:
    batches, size = tail.read(offset, max_bytes, one, stop)
    assert size == sum(map(len, batches))
    return [batch[0] for batch in batches]


def test_reads_begin_with_the_batch_of_the_offset() -> None:
    tail = filled(2, 3, 1, start=10)
    assert [read(tail, offset) for offset in range(10, 17)] == [
        [0, 1, 2],
        [0, 1, 2],
        [1, 2],
        [1, 2],
        [1, 2],
        [2],
        [2],
    ]


def test_reads_end_before_the_stop() -> None:
    """
    No batch that begins at or behind the stop is returned, even if it is the only one.
    """
    tail = filled(2, 3, 1)
    assert [read(tail, 0, stop=stop) for stop in (0, 1, 2, 5, 6)] == [[], [0], [0], [0, 1], [0, 1, 2]]
    assert read(tail, 5, one=True, stop=5) == []


def test_truncation_drops_whole_batches() -> None:
    """
    A batch is dropped when none of its offsets is needed.
    """
    tail = filled(2, 3, 1)
    tail.cut(1)
    assert (tail.start, tail.size) == (0, 6)
    tail.cut(4)
    assert (tail.start, tail.size, read(tail, 0)) == (2, 4, [1, 2])
    tail.cut(6)
    assert (tail.start, tail.end, tail.size, read(tail, 6)) == (6, 6, 0, [])
    tail.add(b"\x09", 6, 7)
    assert (tail.start, read(tail, 6)) == (6, [9])


def test_the_oldest_batch_is_dropped_alone() -> None:
    tail = filled(2, 3, 1)
    assert (tail.first, tail.first_end) == (b"\0\0", 2)
    tail.drop_first()
    assert (tail.start, tail.size, tail.first, tail.first_end) == (2, 4, b"\1\1\1", 5)
    tail.cut(6)
    assert tail.first is None


def test_batches_from_an_offset_on() -> None:
    """
    They begin with the batch that contains the offset; at the end there are none.
    """
    tail = filled(2, 3, 1, start=10)
    found = [[batch[0] for batch in tail.from_offset(offset)] for offset in (9, 10, 11, 12, 15, 16)]
    assert found == [[0, 1, 2], [0, 1, 2], [0, 1, 2], [1, 2], [2], []]
    assert [tail.size_from(offset) for offset in (9, 11, 12, 15, 16)] == [6, 6, 4, 1, 0]


def test_one_batch_is_found_by_its_offset() -> None:
    """
    An offset before all batches finds the first, one behind all finds none.
    """
    tail = filled(2, 3, 1, start=10)
    found = [tail.at(offset) for offset in (9, 10, 11, 12, 14, 15, 16)]
    assert [None if each is None else (each[0][0], each[1]) for each in found] == [
        (0, 12),
        (0, 12),
        (0, 12),
        (1, 15),
        (1, 15),
        (2, 16),
        None,
    ]
    tail.cut(12)
    assert tail.at(10) == (b"\1\1\1", 15)
    assert BatchCache[bytes](5).at(5) is None


def test_other_batches_replace_the_oldest() -> None:
    tail = filled(2, 3, 1, 1)
    tail.drop_first()
    tail.exchange(lambda batch: bytes(len(batch)) if batch != b"\3" else None)
    assert tail.batches == [b"\0\0\0", b"\0", b"\3"]


@given(
    st.lists(st.integers(1, 5) | st.tuples(st.just("cut"), st.integers(0, 99)), max_size=400),
    st.integers(0, 200),
    st.integers(0, 30),
    st.booleans(),
)
def test_the_cache_reads_like_a_list(
    steps: list[int | tuple[str, int]], offset: int, max_bytes: int, one: bool
) -> None:
    """
    After any additions and truncations a read gives what a list would.
    """
    tail, model = BatchCache[bytes](0), list[tuple[int, int]]()
    for step in steps:
        if isinstance(step, int):
            model.append((tail.end, tail.end + step))
            tail.add(bytes(step), tail.end, tail.end + step)
        else:
            tail.cut(step[1])
            model = [place for place in model if place[1] > step[1]]
    assert tail.start == (model[0][0] if model else tail.end)
    assert tail.size == sum(end - base for base, end in model) == sum(map(len, tail.batches))
    found, left = list[int](), max_bytes
    for base, end in model:
        if end <= offset:
            continue
        left -= end - base
        if left < 0 and (found or not one):
            break
        found.append(end - base)
    if offset < tail.end:
        assert [len(batch) for batch in tail.read(offset, max_bytes, one, PLENTY)[0]] == found
