"""
What a partition remembers of the messages of others that were shown before they were in files.
"""

import pytest

from kgateway.broker.seaweedmq.files.partition_files import FilesEnd
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.partitions.shown_messages import ShownMessages
from kgateway.broker.seaweedmq.tail.tail_position import TailPosition


@pytest.fixture
def shown() -> ShownMessages:
    """
    Files end at the offset 100, with the message 49 of the time 490.
    """
    return ShownMessages(FilesEnd(100, 50, ts_ns=490))


def messages(first: int, count: int) -> list[LoggedMessage]:
    return [LoggedMessage(number, 10 * number, b"k", b"v") for number in range(first, first + count)]


def test_the_next_message_follows_the_last_one_in_files(shown: ShownMessages) -> None:
    assert shown.position(50) == TailPosition(50, 490)


def test_the_next_message_follows_what_was_shown_last(shown: ShownMessages) -> None:
    shown.show(100, 102, messages(50, 2), 100)
    assert shown.position(52) == TailPosition(52, 510)
    assert shown.position(50) == TailPosition(50, None)


def test_after_a_gap_nothing_is_known() -> None:
    assert ShownMessages(FilesEnd(100, 50, gap=3, ts_ns=490)).position(50) == TailPosition(50, None)


def test_nothing_is_known_of_a_recreated_partition(shown: ShownMessages) -> None:
    shown.moved()
    assert shown.position(50) == TailPosition(50, None)


def test_shown_messages_keep_their_offsets(shown: ShownMessages) -> None:
    shown.show(100, 102, messages(50, 2), 100)
    shown.show(102, 103, messages(52, 1), 100)
    assert [shown.end.offset_of(time) for time in (490, 500, 510, 520, 530)] == [None, 100, 101, 102, None]
    assert (shown.end.offset, shown.end.ts_ns) == (103, 520)


def test_those_that_are_in_files_are_forgotten(shown: ShownMessages) -> None:
    shown.show(100, 102, messages(50, 2), 100)
    shown.show(102, 103, messages(52, 1), 102)
    assert [shown.end.offset_of(time) for time in (500, 510, 520)] == [None, None, 102]


def test_a_loss_is_news_while_something_is_in_no_file(shown: ShownMessages) -> None:
    assert not shown.lose()
    assert not shown.has_lost
    shown.show(100, 102, messages(50, 2), 100)
    assert shown.lose()
    assert shown.has_lost


def test_files_that_are_taken_over_end_it(shown: ShownMessages) -> None:
    shown.show(100, 102, messages(50, 2), 100)
    shown.lose()
    shown.take_over(FilesEnd(105, 45, ts_ns=700))
    assert not shown.has_lost
    assert not shown.lose()
    assert shown.position(45) == TailPosition(45, 700)
    assert shown.end.offset_of(500) is None
    assert (shown.end.offset, shown.end.ts_ns) == (105, 700)
