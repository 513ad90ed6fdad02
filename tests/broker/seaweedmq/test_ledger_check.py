"""
Ledgers are compared with logs.
"""

import pytest

from kgateway.broker.seaweedmq.formats.format import PlacedMessage
from kgateway.broker.seaweedmq.inspection.verification import LedgerCheck
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Ledger

HERE = 5, RingRange(0, 2520)
NOON = 1_800_000_000 * SECOND_NS


def batches() -> Ledger:
    """
    Three batches, of two records each.
    """
    ledger = Ledger(True, *HERE)
    for number in range(3):
        ledger.append(2 * number, number, NOON, 2)
    return ledger


def run() -> Ledger:
    """
    Six records in one row.
    """
    ledger = Ledger(False, *HERE)
    ledger.append(0, 0, NOON, 6)
    return ledger


def log(batched: bool, count: int = 6) -> list[PlacedMessage]:
    """
    A log with this many records.
    """
    step = 2 if batched else 1
    return [PlacedMessage(offset, step, offset // step, NOON + offset, 0) for offset in range(0, count, step)]


def found(
    ledger: Ledger, placed: list[PlacedMessage], generation: tuple[int, RingRange] = HERE
) -> tuple[list[str], int]:
    """
    The reasons of the faults, and how many more offsets the log has.
    """
    check = LedgerCheck(ledger)
    faults = [fault for each in placed for fault in check.show(each, generation)]
    return [f"{fault.kind.value}: {fault.reason}" for fault in (*faults, *check.rest())], check.ahead


@pytest.mark.parametrize("make", [batches, run])
def test_nothing_is_wrong_with_what_agrees(make: type) -> None:
    """
    Messages after the last row are counted, and are no fault.
    """
    ledger = make()
    assert found(ledger, log(ledger.batched, 10)) == ([], 4)


@pytest.mark.parametrize("make", [batches, run])
def test_what_does_not_count_any_more_is_not_looked_at(make: type) -> None:
    """
    Messages before the start of the log are skipped.
    """
    ledger = make()
    ledger.drop_before(2)
    assert found(ledger, log(ledger.batched)) == ([], 0)
    assert found(ledger, log(ledger.batched)[-2 if ledger.batched else -4 :]) == ([], 0)


def test_another_message_is_a_fault_of_sequence() -> None:
    """
    Another generation is such a fault, too.
    """
    placed = log(True)
    placed[1] = placed[1]._replace(message_offset=7)
    assert found(batches(), placed)[0] == ["sequence: row 1 has offset 2 in message 1, but the log has it in message 7"]
    placed = log(False)
    placed[4] = placed[4]._replace(message_offset=9)
    assert found(run(), placed)[0] == ["sequence: row 0 has offset 4 in message 4, but the log has it in message 9"]
    reasons, _ = found(run(), log(False, 1) + log(False)[1:], (6, HERE[1]))
    assert reasons[0] == "sequence: row 0 has offset 0 in another generation than the log"


def test_a_time_after_the_publishing_is_a_fault_of_time() -> None:
    """
    Clocks of two machines may differ by less than a second.
    """
    placed = [each._replace(ts_ns=NOON - SECOND_NS + 1) for each in log(True)]
    assert found(batches(), placed)[0] == []
    placed[2] = placed[2]._replace(ts_ns=NOON - SECOND_NS)
    (reason,) = found(batches(), placed)[0]
    assert reason.startswith(
        f"time: row 2 has the time {NOON}, but offset 4 was published earlier, at {NOON - SECOND_NS}"
    )


def test_offsets_without_a_row_are_a_fault_of_coverage() -> None:
    ledger = batches()
    gap = Ledger(True, *HERE)
    for number in (0, 2):
        row = ledger.rows.at(number)
        gap.append(row.kafka, row.message_offset, row.ts_ns, row.span)
    assert found(gap, log(True))[0] == ["coverage: offset 2 is in message 1 of the log, but in no row"]


@pytest.mark.parametrize("make", [batches, run])
def test_rows_without_messages_are_a_fault_of_coverage(make: type) -> None:
    ledger = make()
    placed = log(ledger.batched)
    del placed[1]
    (reason,) = found(ledger, placed)[0]
    told = "row 1 has offsets 2 to 3, but the log has 0 of them" if ledger.batched else "row 0 has offsets 0 to 5"
    assert reason.startswith(f"coverage: {told}")
