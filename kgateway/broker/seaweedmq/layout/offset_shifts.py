"""
The file `shifts.offset` in a folder of messages: by how much Kafka's offsets of messages that do not say theirs differ
from SeaweedMQ's, if not by what the topic file says. It is a JSON list of pairs: the name of a log file, and the shift
from that file on.

SeaweedMQ forgets what a killed broker had in memory, and gives the same offsets to other messages. If consumers have
already got the first ones, the others need offsets of their own. SeaweedMQ's programs ignore files whose names end like
this one's.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from kgateway.wire.errors import Malformed, MessageField

SHIFTS = "shifts.offset"


class OffsetShift(NamedTuple):
    name: str  # of the first log file with this shift
    shift: int  # Kafka's offsets minus SeaweedMQ's


def shift_of(name: str, shifts: Sequence[OffsetShift], before: int) -> int:
    """
    The shift of a log file; `before` is that of the files before the first one in the list.
    """
    return next((each.shift for each in reversed(shifts) if each.name <= name), before)


def with_shift(shifts: Sequence[OffsetShift], added: OffsetShift) -> Sequence[OffsetShift]:
    """
    The shifts if from a file on there is another one.
    """
    return [*(each for each in shifts if each.name < added.name), added]


def encode_shifts(shifts: Sequence[OffsetShift]) -> bytes:
    return json.dumps(shifts).encode()


def read_shifts(content: bytes) -> Sequence[OffsetShift]:
    try:
        return [OffsetShift(str(name), int(shift)) for name, shift in json.loads(content)]
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"it is not a list of file names and numbers: {error}"
        raise Malformed(MessageField(SHIFTS, 0, "JSON"), 0, reason) from None
