"""
Faults of ledgers are found.
"""

import pytest
from hypothesis import given

from kgateway.broker.seaweedmq.inspection.verification import FaultKind, verify
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from tests.broker.seaweedmq.ledgers import Model, models

PART = RingRange(0, 2520)


def three(batched: bool = True) -> Ledger:
    """
    A ledger of three rows, of ten offsets each.
    """
    ledger = Ledger(batched, 1, PART)
    for number in range(3):
        ledger.append(number * 10, number * (1 if batched else 10), (1 + number) * 2_000_000_000, 10)
    return ledger


@pytest.mark.parametrize("batched", [True, False])
def test_nothing_is_wrong_with_a_whole_ledger(batched: bool) -> None:
    """
    Its rows follow one another, from the start of the log to its end.
    """
    assert list(verify(three(batched), 30)) == []
    assert list(verify(three(batched))) == []
    assert list(verify(Ledger(batched, 1, PART), 0)) == []


@pytest.mark.parametrize(
    ("column", "place", "value", "kind", "reason"),
    [
        (0, 1, 9, FaultKind.SEQUENCE, "row 1 begins with Kafka's offset 9, but row 0 ends with 9"),
        (1, 2, 1, FaultKind.SEQUENCE, "row 2 begins with message 1, but row 1 ends with 1"),
        (2, 1, 1, FaultKind.TIME, "row 1 has the time 1, but row 0 has the later 2000000000"),
        (4, 1, 9, FaultKind.COVERAGE, "Kafka's offsets 19 to 19 are in no row before row 2"),
        (1, 2, 4, FaultKind.COVERAGE, "messages 2 to 3 are in no row before row 2"),
        (0, 0, 2, FaultKind.COVERAGE, "Kafka's offsets 0 to 1 are in no row before row 0"),
        (4, 2, 8, FaultKind.COVERAGE, "Kafka's offsets 28 to 29 are in no row before row 3"),
        (4, 2, 11, FaultKind.COVERAGE, "the rows end with Kafka's offset 30, but the log ends with 29"),
    ],
)
def test_each_fault_is_named_with_its_numbers(
    column: int, place: int, value: int, kind: FaultKind, reason: str
) -> None:
    """
    Offsets are repeated, times go back, or offsets and messages are missing.
    """
    ledger = three()
    ledger.rows.columns[column][place] = value
    assert (kind, reason) in [tuple(fault) for fault in verify(ledger, 30)]


def test_runs_end_where_their_messages_do() -> None:
    """
    A run has as many messages as offsets.
    """
    ledger = three(batched=False)
    ledger.rows.messages[1] = 12
    assert [fault.reason for fault in verify(ledger, 30)] == [
        "messages 10 to 11 are in no row before row 1",
        "row 2 begins with message 20, but row 1 ends with 21",
    ]


def test_rows_that_were_dropped_are_not_missed() -> None:
    """
    Rows are numbered from the first that is there.
    """
    ledger = three()
    ledger.drop_before(10)
    assert list(verify(ledger, 30)) == []
    assert [fault.reason for fault in verify(ledger, 31)] == ["Kafka's offsets 30 to 30 are in no row before row 2"]


def test_a_new_generation_counts_its_messages_from_its_own_start() -> None:
    ledger = three()
    ledger.begin(2, PART)
    ledger.append(30, 0, 9_000_000_000, 5)
    assert list(verify(ledger, 35)) == []


@given(models())
def test_only_holes_are_found_where_only_holes_are(model: Model) -> None:
    """
    Each hole is one fault.
    """
    holes = [offset for offset in model.where if offset and offset - 1 not in model.where]
    first = [0] if model.where and 0 not in model.where else []
    found = [fault for fault in verify(model.ledger, model.ledger.end) if "Kafka" in fault.reason]
    assert len(found) == len({*holes, *(min(model.where) for _ in first)})
    assert {fault.kind for fault in verify(model.ledger)} <= {FaultKind.COVERAGE}
