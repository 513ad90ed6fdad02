"""
Where a gateway continues after what other programs have published to its partition.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock

from kgateway.broker.seaweedmq.files.partition_files import FilesEnd
from kgateway.broker.seaweedmq.partitions.publisher import PartitionPublisher
from kgateway.broker.seaweedmq.publishing.in_flight import SentBatch


@pytest.fixture
def publisher() -> PartitionPublisher:
    """
    The publisher of a partition whose files end at the offset 100, with the message 49.
    """
    ledger = SimpleNamespace(add_flushed=lambda sent: None)
    context: Any = SimpleNamespace(topic="t", index=0, clock=Clock(), ledger=ledger)
    return PartitionPublisher(context, FilesEnd(100, 50), lambda _: iter(()), lambda: 1, lambda: None, lambda _: None)


def continues(publisher: PartitionPublisher) -> tuple[int, int]:
    return publisher.in_flight.end, publisher.in_flight.next_message


def test_files_that_have_grown_are_followed(publisher: PartitionPublisher) -> None:
    assert publisher.follow(FilesEnd(103, 53), is_lost=False)
    assert continues(publisher) == (103, 53)


def test_files_of_a_broker_that_counts_again_are_followed(publisher: PartitionPublisher) -> None:
    """
    It was killed, and has given the numbers 40 to 42 once more.
    """
    assert publisher.follow(FilesEnd(103, 43), is_lost=False)
    assert continues(publisher) == (103, 43)


def test_such_files_are_followed_if_they_have_what_was_shown(publisher: PartitionPublisher) -> None:
    publisher.in_flight.follow(SentBatch(100, 102, 51, 2, 0, 0))
    assert publisher.follow(FilesEnd(103, 43), is_lost=False)
    assert continues(publisher) == (103, 43)
    assert publisher.in_flight.is_empty


def test_files_that_were_listed_too_early_are_not(publisher: PartitionPublisher) -> None:
    """
    Records of ours without an offset, such as markers, are messages, too.
    """
    assert not publisher.follow(FilesEnd(100, 49), is_lost=False)
    assert continues(publisher) == (100, 50)


def test_what_was_shown_is_not_forgotten(publisher: PartitionPublisher) -> None:
    publisher.in_flight.follow(SentBatch(100, 102, 51, 2, 0, 0))
    assert not publisher.follow(FilesEnd(101, 51), is_lost=False)
    assert continues(publisher) == (102, 52)
