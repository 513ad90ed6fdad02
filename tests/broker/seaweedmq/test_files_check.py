"""
Messages in files are checked for gaps.
"""

from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.inspection.verification import FilesCheck
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.wire.errors import Malformed, MessageField

OLD = PartitionFolder("/old", 0, 0, 5, RingRange(0, 2520))
NEW = PartitionFolder("/new", 0, 3, 6, RingRange(0, 1260))


def entries(*offsets: int) -> list[LoggedMessage]:
    return [LoggedMessage(offset, 0, b"k", b"v", 0) for offset in offsets]


def found(*shown: tuple[PartitionFolder, list[LoggedMessage]]) -> list[str]:
    """
    The reasons of the faults.
    """
    check = FilesCheck()
    return [fault.reason for folder, piece in shown for fault in check.show(folder, piece)]


def test_a_log_begins_and_ends_anywhere() -> None:
    """
    Earlier messages are deleted, and a message may be repeated.
    """
    assert found((OLD, entries(7, 8)), (OLD, entries(8, 9)), (NEW, entries(3, 4))) == []


def test_what_is_missing_is_named() -> None:
    """
    Messages are missing in a file, between two, or at the beginning of a folder that is not the first one.
    """
    assert found((OLD, entries(1, 4)), (OLD, entries(6))) == [
        "messages 2 to 3 of /old are in none of its files",
        "messages 5 to 5 of /old are in none of its files",
    ]
    assert found((OLD, entries(0)), (NEW, entries(5))) == ["messages 3 to 4 of /new are in none of its files"]


def test_damage_is_told_before_what_comes_behind_it() -> None:
    """
    Damage is reported once, also if nothing follows it.
    """
    check, error = FilesCheck(), Malformed(MessageField("LogEntry", 0, "length"), 7, "it is cut")
    assert list(check.show(OLD, entries(0))) == []
    check.show_damage("/old/file", error)
    told = [fault.reason for fault in (*check.show(OLD, entries(2)), *check.rest())]
    assert told == [f"/old/file cannot be read to its end: {error}", "messages 1 to 1 of /old are in none of its files"]
    check.show_damage("/old/file", error)
    assert len(list(check.rest())) == 1
