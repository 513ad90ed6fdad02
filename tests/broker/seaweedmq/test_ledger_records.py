"""
Ledgers are stored as messages.
"""

from collections.abc import Iterable

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.records import (
    ROWS_MAX,
    LedgerKey,
    Replay,
    ReplayedLedger,
    key_of,
    message,
    parts,
    read_key,
    read_part,
)
from kgateway.wire.errors import Malformed
from kgateway.wire.uuids import Uuid
from tests.broker.seaweedmq.ledgers import Model, models

PART = RingRange(0, 2520)
OWNER = LedgerKey(Uuid(range(16)), 3)
Kept = tuple[bytes, bytes]


def ledger(rows: int, batched: bool = True) -> Ledger:
    """
    A ledger with this many rows, or with this many messages that are records.
    """
    made = Ledger(batched, 5, PART)
    for number in range(rows):
        made.append(number, number, number, 1, number)
    return made


def messages(ledger: Ledger, owner: LedgerKey, epoch: int, first_row: int) -> list[Message]:
    return [message(owner, part) for part in parts(ledger, epoch, first_row)]


def replay(found: Iterable[Kept]) -> tuple[dict[LedgerKey, ReplayedLedger], list[str]]:
    """
    The ledgers in these messages, and the messages that cannot be read.
    """
    replaying = Replay()
    for key, value in found:
        replaying.add(key, value)
    return replaying.found, replaying.unread


def kept(found: list[Message]) -> list[Kept]:
    """
    Messages as they are read from their topic.
    """
    return [(message.key, bytes(message.value)) for message in found]


def replayed(found: list[Kept]) -> ReplayedLedger:
    """
    The only ledger in these messages.
    """
    ledgers, unread = replay(found)
    assert unread == []
    return ledgers[OWNER]


def same(one: Ledger, other: Ledger) -> bool:
    """
    Whether two ledgers agree, row by row.
    """
    rows = list(one.rows.numbered()) == list(other.rows.numbered())
    sections = [[each.section_of(n)[1:] for n, _ in each.rows.numbered()] for each in (one, other)]
    return rows and sections[0] == sections[1] and (one.start, one.end) == (other.start, other.end)


@given(models(), st.integers(0, 1 << 30))
def test_a_ledger_comes_back(model: Model, epoch: int) -> None:
    """
    Rows, sections and the start are restored.
    """
    model.drop_before(model.ledger.end // 3)
    again = replayed(kept(messages(model.ledger, OWNER, epoch, 0)))
    assert same(again.ledger, model.ledger)
    assert again.ledger.batched == model.ledger.batched
    assert (again.epoch, again.faults) == (epoch, [])


@given(models(max_size=20), st.data())
def test_parts_come_together(model: Model, data: st.DataObject) -> None:
    """
    The ledger is published now and then, each time from its first unfinished row; messages may be repeated.
    """
    whole, growing = model.ledger, Ledger(model.ledger.batched, 0, RingRange(0, 1260))
    found: list[Kept] = []
    saved = 0
    for number, row in whole.rows.numbered():
        section = whole.section_of(number)
        growing.begin(section.unix_time_ns, section.part)
        part = data.draw(st.integers(1, row.span)) if not whole.batched else row.span
        growing.append(row.kafka, row.message_offset, row.ts_ns, part, row.max_timestamp)
        if data.draw(st.booleans()):
            found += kept(messages(growing, OWNER, 1, saved)) * data.draw(st.sampled_from([1, 1, 2]))
            saved = growing.first_unfinished
        if part < row.span:
            growing.append(row.kafka + part, row.message_offset + part, row.ts_ns, row.span - part)
    found += kept(messages(growing, OWNER, 1, saved))
    assert same(replayed(found).ledger, growing)
    assert replayed(found).faults == []


@given(models(), st.data())
def test_a_late_repetition_changes_nothing(model: Model, data: st.DataObject) -> None:
    """
    An old message repeats what is known.
    """
    found = kept(messages(model.ledger, OWNER, 1, 0))
    later = kept(messages(model.ledger, OWNER, 1, model.ledger.first_unfinished))
    old = data.draw(st.sampled_from(found))
    again = replayed([*found, *later, old])
    assert same(again.ledger, model.ledger)
    assert again.faults == []


def test_a_row_that_grew_is_not_taken_back() -> None:
    """
    An earlier message about the row is repeated.
    """
    growing = ledger(5, batched=False)
    before = kept(messages(growing, OWNER, 1, 0))
    growing.append(5, 5, 5, max_timestamp=9)
    after = kept(messages(growing, OWNER, 1, growing.first_unfinished))
    assert same(replayed([*before, *after, *before]).ledger, growing)


@given(models(batched=True), st.data())
def test_a_lost_tail_is_not_there(model: Model, data: st.DataObject) -> None:
    """
    The ledger ends with the last message that is not lost.
    """
    found: list[Kept] = []
    for number, _ in model.ledger.rows.numbered():
        part = Ledger(True, 0, RingRange(0, 1260))
        part.rows.extend(model.ledger.rows.take(0, number + 1))
        found += kept(messages(part, OWNER, 1, number))
    there = data.draw(st.integers(0, len(found)))
    ledgers, _ = replay(found[:there])
    rows = list(ledgers[OWNER].ledger.rows.numbered()) if there else []
    assert rows == list(model.ledger.rows.numbered())[:there]


def test_rows_behind_lost_ones_are_left_out() -> None:
    """
    They are added once they are published again, with the lost ones.
    """
    whole = ledger(30)
    first, lost, third = (
        kept(messages(part, OWNER, 1, start)) for part, start in ((ledger(10), 0), (ledger(20), 10), (whole, 20))
    )
    damaged = replayed(first + third)
    assert same(damaged.ledger, ledger(10))
    assert damaged.faults == ["rows 10 to 19 are missing, so rows 20 to 29 are left out"]
    assert same(replayed(first + third + lost).ledger, ledger(20))
    assert same(replayed(first + third + lost + third).ledger, whole)


@pytest.mark.parametrize("start", [19, 20, 25, 30])
def test_rows_that_are_deleted_are_not_missed(start: int) -> None:
    """
    Rows from the start of the log on are enough; earlier ones are only missed if the log has them.
    """
    whole = ledger(30)
    first = kept(messages(ledger(10), OWNER, 1, 0))
    whole.drop_before(start)
    found = replayed(first + kept(messages(whole, OWNER, 1, max(start, 20))))
    if start < 20:
        assert found.faults == ["rows 10 to 19 are missing, so rows 20 to 29 are left out"]
    else:
        assert same(found.ledger, whole)
        assert found.faults == []


def test_the_next_owner_knows_better() -> None:
    """
    Its rows replace others with their numbers and later ones; rows of an earlier leader come too late.
    """
    theirs = ledger(20)
    ours = ledger(10)
    ours.append(500, 500, 500)
    found = kept(messages(theirs, OWNER, 1, 0)) + kept(messages(ours, OWNER, 2, 10))
    assert same(replayed(found).ledger, ours)
    theirs.append(20, 20, 20)
    late = replayed(found + kept(messages(theirs, OWNER, 1, 20)))
    assert same(late.ledger, ours)
    assert late.faults == ["rows 20 to 20 are of epoch 1, after rows of epoch 2"]
    shorter = ledger(8, batched=False)
    found = kept(messages(ledger(9, batched=False), OWNER, 1, 0)) + kept(messages(shorter, OWNER, 2, 0))
    assert same(replayed(found).ledger, shorter)


def test_a_ledger_that_was_made_again_takes_the_place_of_the_old_one() -> None:
    """
    The old one may begin later.
    """
    old = ledger(20)
    old.drop_before(15)
    found = kept(messages(old, OWNER, 1, 0)) + kept(messages(ledger(12), OWNER, 2, 0))
    assert same(replayed(found).ledger, ledger(12))


def test_the_start_is_told_without_rows() -> None:
    """
    Records are deleted, and none are added.
    """
    made = ledger(20)
    found = kept(messages(made, OWNER, 1, 0))
    made.drop_before(7)
    (told,) = messages(made, OWNER, 1, made.first_unfinished)
    assert len(told.value) < 50
    assert same(replayed(found + kept([told])).ledger, made)
    made.drop_before(20)
    again = replayed(found + kept(messages(made, OWNER, 1, made.first_unfinished)))
    assert (again.ledger.start, again.ledger.end, len(again.ledger.rows)) == (20, 20, 0)


def test_a_dropped_row_that_is_told_again_stays_dropped() -> None:
    """
    Its old content does not matter any more.
    """
    made = ledger(20)
    found = kept(messages(made, OWNER, 1, 0))
    made.drop_before(10)
    found += kept(messages(made, OWNER, 1, 20))
    first = kept(messages(ledger(5), OWNER, 1, 0))
    again = replayed(found + first)
    assert same(again.ledger, made)


def test_messages_have_a_bounded_size() -> None:
    """
    A long ledger takes several messages.
    """
    made = ledger(2 * ROWS_MAX + 5)
    found = messages(made, OWNER, 1, 0)
    assert [read_part(bytes(message.value)).stop for message in found] == [ROWS_MAX, 2 * ROWS_MAX, 2 * ROWS_MAX + 5]
    assert max(len(message.value) for message in found) < 36.1 * ROWS_MAX
    assert same(replayed(kept(found)).ledger, made)


def test_each_ledger_has_its_own() -> None:
    """
    The key has topic id and partition.
    """
    owners = [OWNER, LedgerKey(OWNER.topic_id, 4), LedgerKey(Uuid(bytes(16)), 3)]
    found = [each for n, owner in enumerate(owners, 1) for each in kept(messages(ledger(n), owner, 1, 0))]
    ledgers, _ = replay(found)
    assert [len(ledgers[owner].ledger.rows) for owner in owners] == [1, 2, 3]


def test_the_key_has_the_slots_of_the_partition() -> None:
    """
    Each partition has 32: slots 96 to 127 are partition 3.
    """
    assert key_of(OWNER) == bytes(range(16)) + (96).to_bytes(4, "big") + (127).to_bytes(4, "big")
    assert read_key(key_of(OWNER)) == OWNER


def test_the_form_stays_as_it_is() -> None:
    """
    The next version of the gateway reads ledgers of this one.
    """
    made = Ledger(True, 7, RingRange(630, 1260))
    made.append(16, 2, 3, 5, 4)
    made.start = 1
    (message,) = messages(made, OWNER, 9, 0)
    head = "01 01 00000009 0000000000000001 0000000000000007 00000276 000004ec 0000000000000000 00000001"
    columns = "0000000000000010 0000000000000002 0000000000000003 0000000000000004 00000005"
    data = bytes(message.value)
    assert data[:-4] == bytes.fromhex(head + columns)
    assert same(replayed(kept([message])).ledger, made)


@pytest.mark.parametrize("damage", [b"", b"x", b"\0" * 60])
def test_what_is_damaged_is_not_read(damage: bytes) -> None:
    """
    A damaged message is named by its place, and the others are read.
    """
    (whole,) = kept(messages(ledger(3), OWNER, 1, 0))
    flipped = (whole[0], whole[1][:50] + bytes([whole[1][50] ^ 1]) + whole[1][51:])
    for broken in ((whole[0], damage), (damage, whole[1]), flipped, (whole[0], whole[1][:-1])):
        ledgers, unread = replay([broken, whole])
        assert [text.split(":")[0] for text in unread] == ["message 0"]
        assert same(ledgers[OWNER].ledger, ledger(3))


def missed(*found: Kept) -> list[str]:
    """
    The places of the missed messages among these.
    """
    replaying = Replay()
    for each in found:
        replaying.add(*each)
    return [text.split(":")[0] for text in replaying.missed]


def test_what_is_told_again_is_not_missed() -> None:
    """
    The same leader repeats it, or a later one that has read the log; a mere repetition of other rows does not count.
    """
    made = ledger(3)
    (whole,) = kept(messages(made, OWNER, 1, 0))
    broken = whole[0], b"x"
    assert missed(whole, broken) == ["message 1"]
    assert missed(whole, broken, whole) == ["message 1"]
    assert missed(broken, whole) == []
    (again,) = kept(messages(made, OWNER, 2, 0))
    assert missed(whole, broken, again) == []
    (other,) = kept(messages(made, OWNER._replace(partition=4), 2, 0))
    assert missed(broken, other) == ["message 0"]
    assert missed((b"", whole[1]), whole) == ["message 0"]
    (beyond,) = kept(messages(ledger(9), OWNER, 1, 5))
    assert missed(whole, broken, beyond) == ["message 1"]


def test_slots_of_no_partition_are_malformed() -> None:
    """
    Slots begin with a multiple of 32, and are 32.
    """
    for first, last in ((1, 32), (0, 32), (32, 31)):
        with pytest.raises(Malformed, match=f"slots {first} to {last}"):
            read_key(bytes(16) + first.to_bytes(4, "big") + last.to_bytes(4, "big"))


def test_a_later_version_is_not_read() -> None:
    """
    The error names the version.
    """
    (whole,) = messages(ledger(3), OWNER, 1, 0)
    body = b"\2" + bytes(whole.value)[1:-4]
    with pytest.raises(Malformed, match="version 2, but this gateway reads 1"):
        read_part(body + crc32c(body).to_bytes(4, "big"))
