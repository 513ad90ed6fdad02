"""
What every program of a copier does: it is told by its argument what to copy in transactions, and tells what became of
them, a line of JSON each. It ends when its standard input does, and when its client can do no more.

    {"told": "ready"}                                       whoever had the transactional id before is shut out
    {"told": "committed", "mark": "copier-1/17/5/commit"}
    {"told": "aborted", "mark": "copier-1/17/6/abort"}
    {"told": "ended", "why": "_FENCED"}

A copy goes to the partition it was read from, with its key, and its value has the mark of its transaction behind it.
Each transaction takes what is there, but no more than BATCH. One of ABORTS is meant to be aborted; before any end the
program waits a random time up to DAWDLE_S, so that it can be killed amid it.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from threading import Thread
from typing import Any, NamedTuple

BATCH, ABORTS, DAWDLE_S = 20, 5, 0.06
POLL_S = 0.2
PATIENCE_S = 45
SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS = 3_000, 300
TRANSACTION_TIMEOUT_MS = 20_000


@dataclass(frozen=True)
class Wanted:
    """
    What to copy. The partitions are for clients that commit offsets without their generation in the group: only the
    transactional id protects these, so each must stand for certain partitions.
    """

    bootstrap: str
    input: str
    output: str
    group: str
    id: str
    seed: int
    partitions: list[int]


class Try(NamedTuple):
    """
    A transaction.
    """

    mark: str
    aborts: bool
    dawdle_s: float

    def value(self, read: bytes) -> bytes:
        """
        What is written of what was read.
        """
        return b"%b|%b" % (read, self.mark.encode())

    def tell(self, outcome: str) -> None:
        """
        What became of it.
        """
        tell(outcome, mark=self.mark)


def wanted() -> Wanted:
    """
    What the program was started for; it ends when nobody wants it any more.
    """
    Thread(target=_end_with_input, daemon=True).start()
    return Wanted(**json.loads(sys.argv[1]))


def tries(how: Wanted) -> Iterator[Try]:
    """
    One transaction after the other.
    """
    chance = Random(how.seed)
    for number in count():
        aborts = chance.randrange(ABORTS) == 0
        mark = f"{how.id}/{how.seed}/{number}/{'abort' if aborts else 'commit'}"
        yield Try(mark, aborts, chance.uniform(0, DAWDLE_S))


def tell(event: str, **of_it: Any) -> None:
    """
    Something has happened.
    """
    sys.stdout.write(json.dumps({"told": event, **of_it}) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)
