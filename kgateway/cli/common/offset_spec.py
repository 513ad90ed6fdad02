"""
Offsets as people write them: `beginning`, `end`, a number, a number before the end, or a time. Kafka's words
`earliest` and `latest` are known too.
"""

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from kgateway.cli.common.times import TIMES, time_ms
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent, offsets_at
from kgateway.topic_partition import TopicPartition

_OFFSET_MAX = (1 << 63) - 1
_NUMBER = re.compile("-?[0-9]+")


class Kind(Enum):
    BEGINNING = auto()
    END = auto()
    OFFSET = auto()
    BACK = auto()  # from the end
    TIME = auto()


class OffsetSpec(NamedTuple):
    """
    An offset in every log.
    """

    kind: Kind
    number: int = 0


BEGINNING, END = OffsetSpec(Kind.BEGINNING), OffsetSpec(Kind.END)
_NAMED = {"beginning": BEGINNING, "earliest": BEGINNING, "end": END, "latest": END}


def offset_spec(text: str) -> OffsetSpec:
    if text in _NAMED:
        return _NAMED[text]
    if _NUMBER.fullmatch(text):
        number = int(text)
        if abs(number) > _OFFSET_MAX:
            raise ArgumentTypeError(f"{text} is not an offset: must be at most {_OFFSET_MAX}")
        return OffsetSpec(Kind.BACK, -number) if text.startswith("-") else OffsetSpec(Kind.OFFSET, number)
    try:
        return OffsetSpec(Kind.TIME, time_ms(text))
    except ValueError as error:
        why = f"{error}; it " if "before 1970" in str(error) else f"{text!r} "
        known = f"beginning, end, an offset, -N for the last N records, {TIMES}"
        raise ArgumentTypeError(f"{why}must be {known}") from None


def resolve(
    cluster: Cluster, spec: OffsetSpec, extents: Mapping[TopicPartition, Extent]
) -> dict[TopicPartition, int | None]:
    """
    The offset in each log, which may be out of range; None if no record is so late.
    """
    if spec.kind is Kind.TIME:
        positions = cluster.retry(partial(offsets_at, cluster, extents, spec.number))
        return {one: positions[one].offset if one in positions else None for one in extents}
    return {one: _offset(spec, extent) for one, extent in extents.items()}


def _offset(spec: OffsetSpec, extent: Extent) -> int:
    match spec.kind:
        case Kind.BEGINNING:
            return extent.start
        case Kind.END:
            return extent.end
        case Kind.BACK:
            return max(extent.end - spec.number, extent.start)
        case _:
            return spec.number
