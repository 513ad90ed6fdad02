"""
Recently read ranges of log files are cached.
"""

from kgateway.broker.partition.batch_cache import BatchCache
from kgateway.broker.seaweedmq.files.range_reader import DecodedRange, RangeCache, RangeKey, RangeStart
from kgateway.wire.types import Buffer


def of_size(size: int) -> DecodedRange:
    tail = BatchCache[Buffer](0)
    tail.add(bytes(size), 0, 1)
    return DecodedRange(tail, RangeStart(size, 1, 0, None))


def key(name: str, start: int = 0) -> RangeKey:
    return RangeKey(name, "1,2", start)


def there(files: RangeCache, names: str) -> list[str]:
    return [name for name in names if files.get(key(name))]


def test_what_nobody_asks_for_goes_first() -> None:
    """
    The cache holds no more than its bytes, except for the range that was added last, however large.
    """
    files = RangeCache(100)
    for name in "abc":
        files.add(key(name), of_size(40))
        files.get(key("a"))
    assert there(files, "abc") == ["a", "c"]
    files.add(key("d"), of_size(1000))
    assert there(files, "acd") == ["d"]


def test_what_was_finished_goes_before_all_others() -> None:
    files = RangeCache(100)
    for name in "ab":
        files.add(key(name), of_size(40))
    files.finished(key("b"))
    files.finished(key("x"))
    files.add(key("c"), of_size(40))
    assert there(files, "abc") == ["a", "c"]


def test_what_was_finished_stays_while_half_of_the_room_is_free() -> None:
    """
    The next reader finds it.
    """
    files = RangeCache(100)
    for name in "ab":
        files.add(key(name), of_size(20))
        files.finished(key(name))
    assert there(files, "ab") == ["a", "b"]
    files.add(key("c"), of_size(20))
    files.finished(key("c"))
    assert there(files, "abc") == ["a", "b"]
    files.add(key("d"), of_size(20))
    files.finished(key("a"))
    assert there(files, "abd") == ["b", "d"]


def test_a_range_that_is_kept_again_counts_once() -> None:
    files = RangeCache(100)
    for _ in range(5):
        files.add(key("a"), of_size(40))
    files.add(key("b"), of_size(60))
    assert there(files, "ab") == ["a", "b"]


def test_half_of_the_room_is_for_what_is_read_ahead() -> None:
    """
    The room is free again when the range is asked for, cannot be read, or is forgotten.
    """
    files = RangeCache(100)
    assert files.may_read_ahead(key("a"), 30)
    assert not files.may_read_ahead(key("a"), 1)  # it is on its way
    assert not files.may_read_ahead(key("b"), 21)
    files.add(key("a"), of_size(30))
    assert not files.may_read_ahead(key("b"), 21)
    assert files.get(key("a"))
    assert not files.may_read_ahead(key("a"), 1)  # it is here
    assert files.may_read_ahead(key("b"), 50)
    files.release_room(key("b"))
    assert files.may_read_ahead(key("c"), 50)
    files.add(key("c"), of_size(50))
    files.get(key("a"))
    files.add(key("d"), of_size(60))
    assert files.may_read_ahead(key("e"), 50)


def test_a_file_that_is_forgotten_leaves_room() -> None:
    """
    All of its ranges are dropped; the others are kept.
    """
    files = RangeCache(100)
    for start in (0, 20):
        assert files.may_read_ahead(key("a", start), 20)
        files.add(key("a", start), of_size(20))
    files.add(key("b"), of_size(50))
    files.forget({"a"})
    assert files.may_read_ahead(key("d"), 50)
    files.add(key("c"), of_size(50))
    assert there(files, "abc") == ["b", "c"]
