"""
Ranges of log files that were read lately.
"""

from kgateway.broker.seaweedmq.decoded_files import Decoded, DecodedFiles, Key, Mark
from kgateway.broker.tail import Tail
from kgateway.wire.types import Buffer


def of_size(size: int) -> Decoded:
    tail = Tail[Buffer](0)
    tail.add(bytes(size), 0, 1)
    return Decoded(tail, Mark(size, 1, 0))


def key(name: str, start: int = 0) -> Key:
    return Key(name, "1,2", start)


def there(files: DecodedFiles, names: str) -> list[str]:
    return [name for name in names if files.get(key(name))]


def test_what_nobody_asks_for_goes_first() -> None:
    """
    Only so many bytes are kept, but for the range that came last, however large.
    """
    files = DecodedFiles(100)
    for name in "abc":
        files.keep(key(name), of_size(40))
        files.get(key("a"))
    assert there(files, "abc") == ["a", "c"]
    files.keep(key("d"), of_size(1000))
    assert there(files, "acd") == ["d"]


def test_what_was_read_to_its_end_goes_before_all_others() -> None:
    files = DecodedFiles(100)
    for name in "ab":
        files.keep(key(name), of_size(40))
    files.read_to_its_end(key("b"))
    files.read_to_its_end(key("x"))
    files.keep(key("c"), of_size(40))
    assert there(files, "abc") == ["a", "c"]


def test_what_was_read_to_its_end_stays_while_half_of_the_room_is_free() -> None:
    """
    Who asks for it reads it again.
    """
    files = DecodedFiles(100)
    for name in "ab":
        files.keep(key(name), of_size(20))
        files.read_to_its_end(key(name))
    assert there(files, "ab") == ["a", "b"]
    files.keep(key("c"), of_size(20))
    files.read_to_its_end(key("c"))
    assert there(files, "abc") == ["a", "b"]
    files.keep(key("d"), of_size(20))
    files.read_to_its_end(key("a"))
    assert there(files, "abd") == ["b", "d"]


def test_a_range_that_is_kept_again_counts_once() -> None:
    files = DecodedFiles(100)
    for _ in range(5):
        files.keep(key("a"), of_size(40))
    files.keep(key("b"), of_size(60))
    assert there(files, "ab") == ["a", "b"]


def test_half_of_the_room_is_for_what_is_read_ahead() -> None:
    """
    Until it is asked for, or cannot be had, or has gone.
    """
    files = DecodedFiles(100)
    assert files.may_read_ahead(key("a"), 30)
    assert not files.may_read_ahead(key("a"), 1)  # it is on its way
    assert not files.may_read_ahead(key("b"), 21)
    files.keep(key("a"), of_size(30))
    assert not files.may_read_ahead(key("b"), 21)
    assert files.get(key("a"))
    assert not files.may_read_ahead(key("a"), 1)  # it is here
    assert files.may_read_ahead(key("b"), 50)
    files.not_kept(key("b"))
    assert files.may_read_ahead(key("c"), 50)
    files.keep(key("c"), of_size(50))
    files.get(key("a"))
    files.keep(key("d"), of_size(60))
    assert files.may_read_ahead(key("e"), 50)


def test_a_file_that_is_forgotten_leaves_room() -> None:
    """
    With all of its ranges; the others stay.
    """
    files = DecodedFiles(100)
    for start in (0, 20):
        assert files.may_read_ahead(key("a", start), 20)
        files.keep(key("a", start), of_size(20))
    files.keep(key("b"), of_size(50))
    files.forget({"a"})
    assert files.may_read_ahead(key("d"), 50)
    files.keep(key("c"), of_size(50))
    assert there(files, "abc") == ["b", "c"]
