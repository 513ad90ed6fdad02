"""
Whether messages follow one another in files.
"""

from kgateway.broker.seaweedmq.files_check import FilesCheck
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.layout import Range
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.wire.malformed import Malformed, Place

OLD = Folder("/old", 0, 0, 5, Range(0, 2520))
NEW = Folder("/new", 0, 3, 6, Range(0, 1260))


def entries(*offsets: int) -> list[Entry]:
    """
    Messages with these offsets.
    """
    return [Entry(offset, 0, b"k", b"v", 0) for offset in offsets]


def found(*shown: tuple[Folder, list[Entry]]) -> list[str]:
    """
    What is wrong with them.
    """
    check = FilesCheck()
    return [fault.reason for folder, piece in shown for fault in check.show(folder, piece)]


def test_a_log_begins_and_ends_anywhere() -> None:
    """
    What was before it is deleted; and a message may come twice.
    """
    assert found((OLD, entries(7, 8)), (OLD, entries(8, 9)), (NEW, entries(3, 4))) == []


def test_what_is_missing_is_named() -> None:
    """
    In a file, between two, and at the beginning of a folder that is not the first one.
    """
    assert found((OLD, entries(1, 4)), (OLD, entries(6))) == [
        "messages 2 to 3 of /old are in none of its files",
        "messages 5 to 5 of /old are in none of its files",
    ]
    assert found((OLD, entries(0)), (NEW, entries(5))) == ["messages 3 to 4 of /new are in none of its files"]


def test_damage_is_told_before_what_comes_behind_it() -> None:
    """
    Once; also where nothing comes.
    """
    check, error = FilesCheck(), Malformed(Place("LogEntry", 0, "length"), 7, "it is cut")
    assert list(check.show(OLD, entries(0))) == []
    check.show_damage("/old/file", error)
    told = [fault.reason for fault in (*check.show(OLD, entries(2)), *check.rest())]
    assert told == [f"/old/file cannot be read to its end: {error}", "messages 1 to 1 of /old are in none of its files"]
    check.show_damage("/old/file", error)
    assert len(list(check.rest())) == 1
