"""
What every program of a member does: it is told by its argument which group to join, tells what befalls it, a line of
JSON an event, and leaves when its standard input has a line or ends.

    {"at": 1700000000.123, "told": "assigned", "partitions": ["t:0", "t:1"]}
    {"at": 1700000000.234, "told": "processed", "offsets": {"t:0": [7, 8, 9]}}
    {"at": 1700000000.235, "told": "committed", "offsets": {"t:0": 10}, "since": 1700000000.234}

It tells what it has processed before it commits that, and that a partition is revoked before the group can know.
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
    How to be a member.
    """

    bootstrap: str
    group: str
    topics: list[str]
    protocol: str  # eager, cooperative or consumer
    session_timeout_ms: int
    heartbeat_interval_ms: int
    instance: str | None = None
    work_ms: int = 0  # between what is processed and its commit
    first_work_ms: int = 0  # so much longer the first time, with clients of Python
    handover_ms: int = 0  # it takes so long to let partitions go


def wanted() -> Wanted:
    """
    What the program was started for.
    """
    return Wanted(**json.loads(sys.argv[1]))


def works_s(how: Wanted) -> Iterator[float]:
    """
    How long it takes each time.
    """
    return chain([(how.first_work_ms + how.work_ms) / 1000], repeat(how.work_ms / 1000))


def tell(event: str, **of_it: Any) -> None:
    """
    Something has happened.
    """
    sys.stdout.write(json.dumps({"at": time(), "told": event, **of_it}) + "\n")
    sys.stdout.flush()


def place(topic: str, partition: int) -> str:
    """
    A partition in what is told.
    """
    return f"{topic}:{partition}"


def tell_processed(places: Iterable[tuple[str, int]]) -> dict[str, int]:
    """
    These places and offsets are processed; what is to be committed for that.
    """
    offsets: dict[str, list[int]] = {}
    for where, offset in places:
        offsets.setdefault(where, []).append(offset)
    tell("processed", offsets=offsets)
    return {where: found[-1] + 1 for where, found in offsets.items()}


def tell_committed(since: float, offsets: Mapping[str, int], why_not: object = None, code: int = 0) -> None:
    """
    What became of a commit that was begun at a time.
    """
    if why_not is None:
        tell("committed", offsets=offsets, since=since)
    else:
        tell("refused", offsets=offsets, since=since, code=code, why=str(why_not))


def told_to_leave() -> Event:
    """
    Set when it is.
    """
    leave = Event()

    def wait() -> None:
        sys.stdin.readline()
        leave.set()

    Thread(target=wait, daemon=True).start()
    return leave
