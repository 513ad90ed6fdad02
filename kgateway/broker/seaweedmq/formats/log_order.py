"""
The order of messages in the log, and their numbers.

A broker gives a message its offset, and only then appends it. So if several programs publish to a partition at the same
time, messages may be in the log in another order than that of their offsets: 3, 5, 4, 6. The order of the log is the
one in which subscribers of SeaweedMQ get them, and the one that consumers see. So our rule is: within a file, messages
are counted, beginning with the offset of the first one: 3, 4, 5, 6. A busy machine may keep a message back until
hundreds of others have overtaken it; counting does not mind.

How far the broker has counted can be told from the last messages, because nearly all of them are where their offset
says. Of a handful of messages nobody can say whether a number is missing for good or for now; few messages are seldom
from programs that publish at the same time, so it is missing for good.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low

from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage

NEIGHBOURS = 64  # among which a message is mostly moved: what comes later is taken for missing, for now
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


def counted(entries: Iterable[LoggedMessage], first: int | None) -> Iterator[LoggedMessage]:
    """
    Consecutive messages of a file with consecutive offsets, from this one on, or from that of the first message.
    """
    number = first
    for entry in entries:
        if number is None:
            number = entry.offset
        yield entry if entry.offset == number else entry._replace(offset=number)
        number += 1


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
