"""
Published messages that are not in files yet.
"""

import pytest

from kgateway.broker.seaweedmq.publishing.in_flight import InFlight, OffsetsShifted


def test_answers_count_messages_and_move_batches() -> None:
    """
    A batch is stored when its last message is answered.
    """
    in_flight = InFlight(100, 7)
    in_flight.sent(100, 103, 3)
    in_flight.sent(103, 104, 1)
    assert (in_flight.next_message, in_flight.acked) == (11, 100)
    assert not in_flight.answered(2, 8)
    assert in_flight.acked == 100
    assert in_flight.answered(1, 9)
    assert in_flight.acked == 103
    assert in_flight.answered(1, 10)
    assert in_flight.acked == 104


def test_several_batches_are_answered_at_once() -> None:
    in_flight = InFlight(0, 0)
    for offset in range(3):
        in_flight.sent(offset, offset + 1, 1)
    assert in_flight.answered(3, 2)
    assert in_flight.acked == 3


@pytest.mark.parametrize("last", [6, 8])
def test_another_offset_is_noticed(last: int) -> None:
    """
    Another program's message takes an offset that was expected for one of ours.
    """
    in_flight = InFlight(0, 7)
    in_flight.sent(0, 1, 1)
    with pytest.raises(OffsetsShifted, match="should have 7"):
        in_flight.answered(1, last)


def test_only_what_was_answered_is_known_to_be_in_files() -> None:
    """
    A file may have a message before the broker has answered for it; the batch counts when both have happened.
    """
    in_flight = InFlight(0, 0)
    in_flight.sent(0, 2, 2)
    in_flight.sent(2, 4, 2)
    in_flight.answered(2, 1)
    assert in_flight.in_files(1) is False
    assert in_flight.in_files(4) is True
    assert (in_flight.flushed, in_flight.is_empty) == (2, False)
    in_flight.answered(2, 3)
    assert not in_flight.is_empty
    assert in_flight.in_files(4)
    assert (in_flight.flushed, in_flight.is_empty) == (4, True)
    assert not in_flight.in_files(4)


def test_kafkas_offset_says_what_is_in_files_however_a_broker_counts() -> None:
    """
    A broker that gives offsets again names messages of old files; batches before Kafka's offset are in files.
    """
    in_flight = InFlight(100, 3)
    in_flight.sent(100, 102, 1)
    in_flight.sent(102, 105, 1)
    in_flight.answered(2, 4)
    assert not in_flight.in_files_to(101)
    assert in_flight.in_files_to(104)
    assert (in_flight.flushed, in_flight.is_empty) == (102, False)
    assert in_flight.in_files_to(105)
    assert (in_flight.flushed, in_flight.is_empty) == (105, True)
