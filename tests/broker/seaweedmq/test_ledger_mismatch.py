"""
A stored ledger is checked against the bounds of its log.
"""

import pytest

from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.snapshot import UnusableLedger
from kgateway.broker.seaweedmq.partitions.partition_ledger import check

PART = RingRange(0, 2520)
BATCH = FORMATS["batch"]


def ledger(first: int = 2, batches: int = 3) -> Ledger:
    """
    A ledger of batches of two records, the first at this offset.
    """
    made = Ledger(True, 5, PART)
    for number in range(batches):
        made.append(first + 2 * number, number, 0, 2)
    return made


def started(start: int, batches: int = 3) -> Ledger:
    """
    A ledger in which only records from this offset on count.
    """
    made = ledger(batches=batches)
    made.drop_before(start)
    return made


@pytest.mark.parametrize(
    ("kept", "form", "folder", "start", "end", "reason"),
    [
        (ledger(), "record", 5, 2, 8, "another format"),
        (ledger(), "batch", 5, 2, 7, "it ends with offset 7, but the log ends with 6"),
        (ledger(), "batch", 5, 1, 8, "it begins with offset 2, but the log begins with 1"),
        (started(3), "batch", 5, 2, 8, "it begins with offset 3, but the log begins with 2"),
        (started(9, 0), "batch", 5, 8, 9, "it begins with offset 9, but the log begins with 8"),
        (ledger(), "batch", 6, 2, 8, "partitions that the topic never had"),
    ],
)
def test_what_cannot_be_is_said(kept: Ledger, form: str, folder: int, start: int, end: int, reason: str) -> None:
    with pytest.raises(UnusableLedger, match=reason):
        check(kept, FORMATS[form], [PartitionFolder("/t", 0, 0, folder, PART)], start, end)


@pytest.mark.parametrize(
    ("kept", "start", "end"),
    [(ledger(), 2, 8), (ledger(), 3, 20), (ledger(batches=0), 0, 0), (ledger(batches=0), 2, 8), (started(3), 3, 8)],
)
def test_what_can_be_is_let_be(kept: Ledger, start: int, end: int) -> None:
    """
    The log may go on after the ledger, and may begin later.
    """
    check(kept, BATCH, [PartitionFolder("/t", 0, 0, 5, PART), PartitionFolder("/u", 0, 0, 6, PART)], start, end)
