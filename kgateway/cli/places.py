"""
Places in logs as people name them: `beginning`, `end`, an offset, so many before the end, or a time.
"""

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from kgateway.cli.times import time_ms
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent, Partition, found

_OFFSET_MAX = (1 << 63) - 1
_NUMBER = re.compile("-?[0-9]+")


class Kind(Enum):
    """
    How a place is named.
    """

    BEGINNING = auto()
    END = auto()
    OFFSET = auto()
    BACK = auto()  # from the end
    TIME = auto()


class Place(NamedTuple):
    """
    A place in every log.
    """

    kind: Kind
    number: int = 0


BEGINNING, END = Place(Kind.BEGINNING), Place(Kind.END)
_NAMED = {"beginning": BEGINNING, "end": END}


def place(text: str) -> Place:
    """
    The place that is meant, as the value of an option.
    """
    if text in _NAMED:
        return _NAMED[text]
    if _NUMBER.fullmatch(text):
        number = int(text)
        if abs(number) > _OFFSET_MAX:
            raise ArgumentTypeError(f"{text} is no offset: the last one there can be is {_OFFSET_MAX}")
        return Place(Kind.BACK, -number) if text.startswith("-") else Place(Kind.OFFSET, number)
    try:
        return Place(Kind.TIME, time_ms(text))
    except ValueError as error:
        why = str(error) if "before 1970" in str(error) else f"{text!r} is none of them"
        known = "beginning, end, an offset, -N for the last N records, a time such as 2026-11-21T18:25:08Z"
        raise ArgumentTypeError(f"{why}: {known}") from None


def resolved(cluster: Cluster, wanted: Place, extents: Mapping[Partition, Extent]) -> dict[Partition, int | None]:
    """
    The offset in each of these logs, which may be outside of it; none where no record is so late.
    """
    if wanted.kind is Kind.TIME:
        places = cluster.settled(partial(found, cluster, extents, wanted.number))
        return {one: places[one].offset if one in places else None for one in extents}
    return {one: _offset(wanted, extent) for one, extent in extents.items()}


def _offset(wanted: Place, extent: Extent) -> int:
    match wanted.kind:
        case Kind.BEGINNING:
            return extent.start
        case Kind.END:
            return extent.end
        case Kind.BACK:
            return max(extent.end - wanted.number, extent.start)
        case _:
            return wanted.number
