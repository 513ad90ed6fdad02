"""
The places of messages in the log, counted as SeaweedMQ counts.

A broker gives a message its offset, and only then appends it. So if several programs publish to a partition at the same
time, neighbours may be in the log in another order than that of their offsets: 3, 5, 4, 6. The order of the log is the
one in which subscribers of SeaweedMQ get them, and the one that consumers see. So our rule is: what counts is a
message's place, which is the offset that it would have if its neighbours had theirs in order: 3, 4, 5, 6.

The place can be told from any few neighbours, because nearly all of them are where their offset says. So it is the same
whether a message is first seen in the memory of the broker or in a file, and wherever a file or a piece of it begins.
Of a handful of messages nobody can say whether a number is missing for good or for now; few messages are seldom from
programs that publish at the same time, so it is missing for good.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low

from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage

NEIGHBOURS = 64  # by how many places a message is moved at most; three busy programs moved one of them by 18
_HANDFUL = 32


def places(offsets: Sequence[int]) -> Sequence[int]:
    """
    The places of consecutive messages with these offsets. A number that is missing for good is nobody's place, and a
    number that is there again is left as it is.
    """
    if not offsets or list(offsets) == list(range(offsets[0], offsets[0] + len(offsets))):
        return offsets
    found: list[int] = []
    while len(found) < len(offsets):
        found += _run(offsets[len(found) :])
    return found


def placed_entries(entries: Iterable[LoggedMessage]) -> Iterator[tuple[LoggedMessage, int]]:
    """
    Consecutive messages, each with its place.
    """
    found = list(entries)
    return zip(found, places([entry.offset for entry in found]), strict=True)


def _run(offsets: Sequence[int]) -> list[int]:
    """
    The places of the first messages, as far as they follow one another.
    """
    place = _first_place(offsets)
    found, seen, is_handful = list[int](), set[int](), len(offsets) < _HANDFUL
    for index, offset in enumerate(offsets):
        if offset != place:
            following = offsets[index + 1 : index + 1 + NEIGHBOURS]
            if not _is_moved(offset, place, seen, following, is_handful=is_handful):
                break
        found.append(place)
        seen.add(offset)
        place += 1
    return found or [offsets[0]]


def _first_place(offsets: Sequence[int]) -> int:
    near = offsets[: NEIGHBOURS + 1]
    is_handful = len(offsets) < _HANDFUL
    first = min(near) if is_handful else median_low(offset - index for index, offset in enumerate(near))
    return first if abs(offsets[0] - first) <= NEIGHBOURS else offsets[0]


def _is_moved(offset: int, place: int, seen: set[int], following: Sequence[int], *, is_handful: bool) -> bool:
    """
    Whether the message with this offset may be at this place: if its offset is smaller, others have overtaken it, and
    if it is larger, it has overtaken others. These follow, unless the known messages end before.
    """
    if abs(offset - place) > NEIGHBOURS or offset in seen:
        return False
    if offset < place or any(each < offset and each not in seen for each in following):
        return True
    return len(following) < NEIGHBOURS and not is_handful
