"""
A group for people.
"""

from collections.abc import Iterator

from kgateway.cli.control import table
from kgateway.cli.layout import counted, number_or_dash, right_aligned
from kgateway.client.groups import CONSUMER, Assigned, Described, Member
from kgateway.client.reading import Reading

_NAME = 255  # members and topics are shown whole, to be copied
_MEMBERS = ("MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT", "TARGET")
_MEMBERS_LIMITS = (_NAME, _NAME, _NAME, 45, 200, 200)
_READING = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER")
_READING_LIMITS = (_NAME, 9, 20, 20, 20, _NAME)


def group_text(group: Described, readings: list[Reading]) -> Iterator[str]:
    """
    What it is, its members, and how far they have read.
    """
    yield from _summary(group, readings)
    if group.members:
        yield ""
        yield from _members(group.members)
    if readings:
        yield ""
        yield from _reading(readings)


def _summary(group: Described, readings: list[Reading]) -> Iterator[str]:
    protocol = f" of {group.protocol_type}" if group.protocol_type not in ("", CONSUMER) else ""
    facts = [f"{group.group_id}: {group.state}", f"{group.type} group{protocol}"]
    facts += [f"epoch {group.epoch}"] if group.epoch is not None else []
    facts += [f"assignor {group.assignor}"] if group.assignor else []
    yield ", ".join([*facts, f"coordinator {group.coordinator}"])
    lags = [one.lag for one in readings if one.lag is not None]
    open_ones = len(readings) - len(lags)
    unknown = f", and {counted(open_ones, 'partition')} of which the lag is not known" if open_ones else ""
    members, partitions = counted(len(group.members), "member"), counted(len(lags), "partition")
    yield f"{members}; lag {sum(lags)} in {partitions}{unknown}"


def _members(members: list[Member]) -> list[str]:
    """
    Without the columns that say nothing: instances where no member is static, targets where all have been reached.
    """
    rows = [
        (one.member_id, one.instance_id or "", one.client_id, one.host, _shown(one.assigned), _target(one))
        for one in members
    ]
    kept = [column for column, _ in enumerate(_MEMBERS) if column not in (1, 5) or any(row[column] for row in rows)]
    headings, limits = [_MEMBERS[column] for column in kept], [_MEMBERS_LIMITS[column] for column in kept]
    return table(headings, limits, [[row[column] for column in kept] for row in rows])


def _shown(assigned: Assigned | None) -> str:
    """
    The partitions, in few words: orders 0-3,7; payments 0.
    """
    if assigned is None:
        return "in a form of its own"
    return "; ".join(f"{topic} {_spans(indexes)}" for topic, indexes in sorted(assigned.items())) or "-"


def _spans(indexes: list[int]) -> str:
    spans: list[list[int]] = []
    for index in indexes:
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _target(member: Member) -> str:
    return "" if member.target is None or member.target == member.assigned else _shown(member.target)


def _reading(readings: list[Reading]) -> list[str]:
    numbers = [
        (
            str(one.partition.index),
            number_or_dash(one.committed and one.committed.offset),
            number_or_dash(one.end),
            number_or_dash(one.lag),
        )
        for one in readings
    ]
    aligned = right_aligned(_READING[1:5], numbers)
    rows = [
        (one.partition.topic, *cells, one.member_id or "-") for one, cells in zip(readings, aligned[1:], strict=True)
    ]
    return table((_READING[0], *aligned[0], _READING[5]), _READING_LIMITS, rows)
