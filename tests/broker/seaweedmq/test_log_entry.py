"""
The messages in log files.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.formats.log_entry import (
    LoggedMessage,
    first_size,
    last_entries,
    logged_messages,
    whole_size,
)
from kgateway.wire.errors import Malformed
from tests.broker.seaweedmq.log_messages import framed

# What `weed mq.broker` 4.48 wrote of ten messages k0 to k9 with the values v0 to v9.
WEED = bytes.fromhex(
    "0000001808bc89b68e83f590f51810fbbed8c6021a02763022026b300000001f089ce8b78e83f590f51810fae2deb1fbffffffff011a0276"
    "3122026b3128010000001a08a583b88e83f590f51810d792888b061a02763222026b3228020000001f088a9bb88e83f590f518109d8dadbd"
    "ffffffffff011a02763322026b3328030000001f08d2bcb88e83f590f518108e88adc8fcffffffff011a02763422026b3428040000001f08"
    "e1d5b88e83f590f51810ede3cbbdf9ffffffff011a02763522026b3528050000001a088af6ba8e83f590f5181086f5a4eb041a0276362202"
    "6b3628060000001908b7b3cd8e83f590f51810f7c5e7101a02763722026b3728070000001908b0fce18e83f590f5181082d093181a027638"
    "22026b3828080000001a08bd91f48e83f590f518109b99fd99051a02763922026b392809"
)

_ENTRIES = st.lists(
    st.builds(
        LoggedMessage,
        st.integers(0, (1 << 63) - 1),
        st.integers(1 << 60, (1 << 63) - 1),
        st.binary(max_size=8),
        st.binary(max_size=8) | st.sampled_from([b"x" * 127, b"x" * 128, b"y" * 70_000]),
        st.just(0),
    ),
    max_size=6,
)


def without_ends(found: list[LoggedMessage]) -> list[LoggedMessage]:
    """
    The messages, without their positions.
    """
    return [entry._replace(end=0) for entry in found]


def test_what_a_broker_wrote_is_read() -> None:
    """
    Offsets, keys and values are those that were published; times grow.
    """
    found = list(logged_messages(WEED))
    assert [(entry.offset, entry.key, entry.value) for entry in found] == [
        (n, b"k%d" % n, b"v%d" % n) for n in range(10)
    ]
    times = [entry.ts_ns for entry in found]
    assert times == sorted(times)
    assert times[0] == 1_795_321_791_129_683_132
    assert found[0].end == 28
    assert found[-1].end == len(WEED)


@given(_ENTRIES)
def test_messages_come_back(wanted: list[LoggedMessage]) -> None:
    """
    Each message has the position of its end in the file, wherever the data begins.
    """
    data = framed(wanted)
    found = list(logged_messages(data, None, 1000))
    assert without_ends(found) == wanted
    assert [entry.end for entry in found] == [1000 + len(framed(wanted[: n + 1])) for n in range(len(wanted))]
    assert not wanted or first_size(data) == len(framed(wanted[:1]))


@given(_ENTRIES, st.data())
def test_a_range_is_read_as_far_as_it_is_whole(wanted: list[LoggedMessage], data: st.DataObject) -> None:
    """
    Data that is cut off anywhere has whole messages up to a position, and these are found.
    """
    whole = framed(wanted)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    size = whole_size(cut)
    found = list(logged_messages(cut, size))
    assert without_ends(found) == wanted[: len(found)]
    assert len(found) == len(wanted) or len(framed(wanted[: len(found) + 1])) > len(cut)
    assert whole_size(cut[:size]) == size


def test_every_cut_is_told() -> None:
    """
    A message is whole with its last byte.
    """
    ends = [0, *(entry.end for entry in logged_messages(WEED))]
    for size in range(len(WEED) + 1):
        assert whole_size(WEED[:size]) == max(end for end in ends if end <= size)


def test_a_message_may_be_as_large_as_the_broker_takes() -> None:
    """
    Sizes around a gibibyte are read.
    """
    assert whole_size(((1 << 30) + 100).to_bytes(4, "big")) == 0


@given(_ENTRIES)
def test_the_last_message_is_found(wanted: list[LoggedMessage]) -> None:
    """
    The others are not read, whatever follows it; it has its position in the file.
    """
    data = framed(wanted)
    if wanted:
        found = list(logged_messages(data, None, 70))
        assert last_entries(data + data[:-1], len(data), 2, 70) == (found[-2:], len(found))


@pytest.mark.parametrize(
    ("data", "place", "position"),
    [
        (WEED[:-1], "length", 286),
        (WEED[:30], "length", 28),
        (WEED + b"\0\0\0", "length", 316),
        (WEED + bytes(4), "ts_ns", 320),
        (WEED + b"\0\0\0\2\xff\xff", "entry", 320),
        (WEED + b"\0\0\0\2\x28\7", "ts_ns", 320),
        (WEED + b"\xff\xff\xff\xff1234", "length", 316),
    ],
)
def test_damage_is_named_with_its_place(data: bytes, place: str, position: int) -> None:
    """
    The data is cut off, zeros, no message, or a message without a time; the error has the position.
    """
    with pytest.raises(Malformed) as failure:
        list(logged_messages(data, None, 5000))
    assert (failure.value.field.path, failure.value.position) == (place, 5000 + position)


@pytest.mark.parametrize("length", [bytes(4), b"\xff\xff\xff\xff"])
def test_a_length_that_cannot_be_is_no_unfinished_message(length: bytes) -> None:
    """
    Zeros and nonsense are damage, which more data does not mend. Messages before it remain whole.
    """
    assert whole_size(WEED + length, 5000) == len(WEED)
    with pytest.raises(Malformed, match="byte 5316: a message cannot have"):
        whole_size(length, 5000 + len(WEED))
