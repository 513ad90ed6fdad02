"""
The file `shifts.offset` in a folder of messages: by how much Kafka's offsets of messages that do not say theirs differ
from SeaweedMQ's, if not by what the topic file says. It is a JSON list of lists: the name of a log file, the shift from
that file on, and the number with which the first message of that file is counted, if the file was looked at.

SeaweedMQ forgets what a killed broker had in memory, and gives the same offsets to other messages. If consumers have
already got the first ones, the others need offsets of their own. And a message that others have overtaken may be the
first one of a file, or be missing before it. SeaweedMQ's programs ignore files whose names end like this one's.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from kgateway.wire.errors import Malformed, MessageField

SHIFTS = "shifts.offset"


class OffsetShift(NamedTuple):
    name: str  # of the first log file with this shift
    shift: int  # Kafka's offsets minus the numbers of messages
    first: int | None = None  # the number with which the first message of that file is counted


def shift_of(name: str, shifts: Sequence[OffsetShift], before: int) -> int:
    """
    The shift of a log file; `before` is that of the files before the first one in the list.
    """
    return next((each.shift for each in reversed(shifts) if each.name <= name), before)


def first_of(name: str, shifts: Sequence[OffsetShift]) -> int | None:
    """
    The number with which the first message of a log file is counted, if it is stored.
    """
    return next((each.first for each in shifts if each.name == name), None)


def with_shift(shifts: Sequence[OffsetShift], added: OffsetShift) -> Sequence[OffsetShift]:
    """
    The shifts if from a file on there is another one.
    """
    return sorted((*(each for each in shifts if each.name != added.name), added), key=lambda each: each.name)


def encode_shifts(shifts: Sequence[OffsetShift]) -> bytes:
    return json.dumps([each if each.first is not None else each[:2] for each in shifts]).encode()


def read_shifts(content: bytes) -> Sequence[OffsetShift]:
    try:
        return [OffsetShift(str(name), int(shift), *map(int, first)) for name, shift, *first in json.loads(content)]
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"it is not a list of file names and numbers: {error}"
        raise Malformed(MessageField(SHIFTS, 0, "JSON"), 0, reason) from None
