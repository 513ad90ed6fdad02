"""
Records read in columns, compared with records read one by one.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.log.compaction.compaction_round import CompactionOutcome, Reader, compact, compact_with
from kgateway.broker.log.compaction.offset_columns import KEY_BYTES, Unfit
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.log.segments.segment_swap import discard_rewritten
from kgateway.records.batch import Batch
from tests.broker.log.compaction.histories import ANY_BATCH, BATCH, LONG_TIMESTAMP, History, histories, holding_two
from tests.broker.log.compaction.jobs import Jobs, keyed
from tests.broker.log.compaction.readers import ROOM, in_columns, plain
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import body, holding

Result = tuple[CompactionOutcome | str, dict[str, bytes]]


def result(history: History, reader: Reader) -> Result:
    """
    The outcome, or what is damaged, and the files that are left.
    """
    with TemporaryDirectory() as path:
        job = history.write(Path(path) / "t-0")
        try:
            outcome: CompactionOutcome | str = compact_with(reader, job, LocalDisk())
        except Damaged as damaged:
            outcome = str(damaged)
        return outcome, {file.name: file.read_bytes() for file in Path(job.folder).iterdir()}


@given(
    history=histories(BATCH),
    room=st.integers(1, 12) | st.just(ROOM),
    group_bytes=st.sampled_from([1, 300, 1 << 20]),
    merged_at_once=st.sampled_from([1, 5, 1 << 10]),
)
def test_same_result(history: History, room: int, group_bytes: int, merged_at_once: int) -> None:
    """
    Both readers write the same bytes, whatever is in the log, and however much is read or merged at a time.
    """
    try:
        found = result(history, in_columns(room, group_bytes, merged_at_once))
    except Unfit:
        return
    assert found == result(history, plain(room))


@given(history=histories(ANY_BATCH), group_bytes=st.sampled_from([1, 300, 1 << 20]))
def test_same_result_of_damaged_batches(history: History, group_bytes: int) -> None:
    """
    The same is true if some batches are damaged, unreadable, or only readable one by one.
    """
    try:
        found = result(history, in_columns(group_bytes=group_bytes))
    except Unfit:
        return
    assert found == result(history, plain())


IRREGULAR = {
    "offsets that fall": sealed(holding(body(1, b"a") + body(0, b"a"), 2), last_offset_delta=1),
    "an offset beyond the batch": sealed(holding(body(0, b"a") + body(7, b"b"), 2), last_offset_delta=1),
    "a negative number of records": sealed(holding(b"", -1), last_offset_delta=1),
    "a timestamp of too many bytes": holding_two(body(0, b"a") + LONG_TIMESTAMP),
}


@pytest.mark.parametrize("first_dirty", [0, 4])
@pytest.mark.parametrize("irregular", IRREGULAR.values(), ids=IRREGULAR)
def test_irregular_batches_are_read_one_by_one(irregular: Batch, first_dirty: int, jobs: Jobs) -> None:
    """
    Columns do not fit them, in the dirty part or the clean one, so the whole round is done in the other way, without
    what the first attempt has written.
    """
    jobs.write([keyed(b"a", b"b")], [irregular], [keyed(b"a", b"b")])
    job = jobs.job(first_dirty=first_dirty, segment_bytes=1)
    with pytest.raises(Unfit, match=r"the batch at offset 2 has [02] irregular records"):
        compact_with(in_columns(), job, jobs.disk)
    outcome = compact(job, jobs.disk)
    assert outcome.cleaned_to == 6
    [first, *_] = found = [jobs.data(one) for one in outcome.rewritten]
    assert first
    discard_rewritten(jobs.disk, jobs.folder, job.token)
    assert outcome == compact_with(plain(), job, jobs.disk)
    assert found == [jobs.data(one) for one in outcome.rewritten]


def test_without_numpy(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Records are read one by one, with less room for keys in the same memory.
    """
    jobs.write([keyed(b"a", b"b", b"c")])
    assert compact(jobs.job(), jobs.disk, 3 * KEY_BYTES).cleaned_to == 3
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert compact(jobs.job(), jobs.disk, 3 * KEY_BYTES).cleaned_to == 1


def test_a_gateway_does_not_import_numpy() -> None:
    """
    Only the process that compacts does.
    """
    script = "import sys, kgateway.broker.log.broker, kgateway.server.brokers; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
