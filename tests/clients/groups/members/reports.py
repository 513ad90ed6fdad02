"""
What every program of a member does: its argument says which group to join, it reports its events as lines of JSON, and
it leaves when its standard input has a line or ends.

    {"at": 1700000000.123, "told": "assigned", "partitions": ["t:0", "t:1"]}
    {"at": 1700000000.234, "told": "processed", "offsets": {"t:0": [7, 8, 9]}}
    {"at": 1700000000.235, "told": "committed", "offsets": {"t:0": 10}, "since": 1700000000.234}

It reports processed records before it commits them, and revoked partitions before the group can know.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from threading import Event, Thread
from time import time
from typing import Any


@dataclass(frozen=True)
class Wanted:
    """
    The settings of a member.
    """

    bootstrap: str
    group: str
    topics: list[str]
    protocol: str  # eager, cooperative or consumer
    session_timeout_ms: int
    heartbeat_interval_ms: int
    instance: str | None = None
    work_ms: int = 0  # between the processing of records and their commit
    first_work_ms: int = 0  # extra time for the first records, with Python clients
    handover_ms: int = 0  # the time to give partitions up


def wanted() -> Wanted:
    """
    The settings in the program's argument.
    """
    return Wanted(**json.loads(sys.argv[1]))


def works_s(how: Wanted) -> Iterator[float]:
    """
    How long the records take each time.
    """
    return chain([(how.first_work_ms + how.work_ms) / 1000], repeat(how.work_ms / 1000))


def tell(event: str, **of_it: Any) -> None:
    sys.stdout.write(json.dumps({"at": time(), "told": event, **of_it}) + "\n")
    sys.stdout.flush()


def place(topic: str, partition: int) -> str:
    """
    The name of a partition in reports.
    """
    return f"{topic}:{partition}"


def tell_processed(places: Iterable[tuple[str, int]]) -> dict[str, int]:
    """
    Report these offsets as processed; returns the offsets to commit.
    """
    offsets: dict[str, list[int]] = {}
    for where, offset in places:
        offsets.setdefault(where, []).append(offset)
    tell("processed", offsets=offsets)
    return {where: found[-1] + 1 for where, found in offsets.items()}


def tell_committed(since: float, offsets: Mapping[str, int], why_not: object = None, code: int = 0) -> None:
    """
    Report the outcome of a commit that was begun at a time.
    """
    if why_not is None:
        tell("committed", offsets=offsets, since=since)
    else:
        tell("refused", offsets=offsets, since=since, code=code, why=str(why_not))


def told_to_leave() -> Event:
    leave = Event()

    def wait() -> None:
        sys.stdin.readline()
        leave.set()

    Thread(target=wait, daemon=True).start()
    return leave
