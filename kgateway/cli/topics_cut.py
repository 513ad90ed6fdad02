"""
Deletes the beginnings of logs, and tells of it.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from kgateway.cli.confirming import confirm
from kgateway.cli.control import as_json, table
from kgateway.cli.layout import counted, right_aligned
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster, refuse
from kgateway.client.offsets import Extent, Partition
from kgateway.client.topics import delete_records
from kgateway.wire.errors import ErrorCode, KafkaError

_HEADINGS = ("TOPIC", "PARTITION", "DELETED", "START", "END")
_LIMITS = (255, 9, 20, 20, 20)

_Start = tuple[int, str | None]  # where a log begins now, and why that is not where it was to begin


def cut(
    options: Namespace, cluster: Cluster, before: Mapping[Partition, int], logs: Mapping[Partition, Extent]
) -> Iterator[str]:
    """
    Delete what stands before these offsets; for each partition how much that was.
    """
    doomed = {one: offset for one, offset in before.items() if offset > logs[one].start}
    lost = sum(offset - logs[one].start for one, offset in doomed.items())
    if doomed:
        confirm(options, f"delete {counted(lost, 'record')} of {', '.join(sorted({one.topic for one in doomed}))}")
    starts: dict[Partition, _Start] = {one: (log.start, None) for one, log in logs.items()}
    starts |= cluster.settled(partial(_deleted, cluster, doomed, logs)) if doomed else {}
    if options.json:
        yield as_json({"partitions": [_told(one, starts[one], logs[one]) for one in sorted(starts)]})
    else:
        yield from _table(starts, logs)
    problems = [f"{one}: {why}" for one, (_, why) in sorted(starts.items()) if why]
    if problems:
        raise Refused("; ".join(problems))


def _deleted(
    cluster: Cluster, doomed: Mapping[Partition, int], logs: Mapping[Partition, Extent]
) -> dict[Partition, _Start]:
    starts: dict[Partition, _Start] = {}
    for one, (code, start) in delete_records(cluster, doomed).items():
        try:
            refuse(code)
            starts[one] = start, None
        except KafkaError as error:
            if error.code.retriable:  # to delete again what is deleted changes nothing
                raise
            starts[one] = logs[one].start, _why(error)
    return starts


def _why(error: KafkaError) -> str:
    if error.code is ErrorCode.POLICY_VIOLATION:
        return f"{error}; its cleanup.policy has no delete in it"
    return str(error)


def _table(starts: Mapping[Partition, _Start], logs: Mapping[Partition, Extent]) -> list[str]:
    rows = sorted(starts)
    numbers = [(one.index, starts[one][0] - logs[one].start, starts[one][0], logs[one].end) for one in rows]
    headings, *aligned = right_aligned(_HEADINGS[1:], [tuple(map(str, row)) for row in numbers])
    return table(
        (_HEADINGS[0], *headings), _LIMITS, [(one.topic, *row) for one, row in zip(rows, aligned, strict=True)]
    )


def _told(one: Partition, start: _Start, log: Extent) -> dict[str, Any]:
    now, why = start
    return {
        "topic": one.topic,
        "partition": one.index,
        "deleted": now - log.start,
        "start": now,
        "end": log.end,
        "problem": why,
    }
