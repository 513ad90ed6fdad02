"""
The shifts of Kafka's offsets in a folder of messages.
"""

import pytest

from kgateway.broker.seaweedmq.layout.offset_shifts import (
    OffsetShift,
    encode_shifts,
    first_of,
    read_shifts,
    shift_of,
    with_shift,
)
from kgateway.wire.errors import Malformed

_SHIFTS = [OffsetShift("2026-11-28-06-00-10", 5), OffsetShift("2026-11-28-06-00-20", 7, 40)]


@pytest.mark.parametrize(("second", "shift"), [("09", 100), ("10", 5), ("19", 5), ("20", 7), ("59", 7)])
def test_a_shift_is_for_all_files_up_to_the_next(second: str, shift: int) -> None:
    assert shift_of(f"2026-11-28-06-00-{second}", _SHIFTS, 100) == shift


def test_a_number_is_for_one_file() -> None:
    assert [first_of(f"2026-11-28-06-00-{second}", _SHIFTS) for second in ("10", "19", "20", "21")] == [
        None,
        None,
        40,
        None,
    ]


def test_a_new_shift_replaces_the_one_of_the_same_file() -> None:
    added = OffsetShift("2026-11-28-06-00-20", 9)
    assert with_shift(_SHIFTS, added) == [_SHIFTS[0], added]
    first = OffsetShift("2026-11-28-06-00-00", 1)
    assert with_shift(_SHIFTS, first) == [first, *_SHIFTS]


def test_shifts_are_read_as_they_were_written() -> None:
    assert read_shifts(encode_shifts(_SHIFTS)) == _SHIFTS


@pytest.mark.parametrize("content", [b"", b"{", b"5", b"[1]", b'[["a", "b"]]', b'[["a", 1, 2, 3]]', b"\xff"])
def test_a_damaged_file_is_refused(content: bytes) -> None:
    with pytest.raises(Malformed, match=r"shifts\.offset"):
        read_shifts(content)
