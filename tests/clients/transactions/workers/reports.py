"""
What every program of a copier does: its argument says what to copy in transactions, and it reports their outcomes as
lines of JSON. It ends when its standard input does, or when its client fails for good.

    {"told": "ready"}                                       whoever had the transactional id before is shut out
    {"told": "committed", "mark": "copier-1/17/5/commit"}
    {"told": "aborted", "mark": "copier-1/17/6/abort"}
    {"told": "ended", "why": "_FENCED"}

A copy is in the partition of its original, with the same key, and its value ends with the mark of its transaction.
Each transaction takes what is there, but at most BATCH records. One of ABORTS is meant to be aborted; before any end
the program waits a random time up to DAWDLE_S, so that it can be killed in the middle.
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
    The settings of a copier. The partitions are for clients that commit offsets without their generation in the group:
    only the transactional id protects these, so each must stand for certain partitions.
    """

    bootstrap: str
    input: str
    output: str
    group: str
    id: str
    seed: int
    partitions: list[int]


class Try(NamedTuple):
    mark: str
    aborts: bool
    dawdle_s: float

    def value(self, read: bytes) -> bytes:
        """
        The copy of a value.
        """
        return b"%b|%b" % (read, self.mark.encode())

    def tell(self, outcome: str) -> None:
        tell(outcome, mark=self.mark)


def wanted() -> Wanted:
    """
    The settings in the program's argument; the program ends when its standard input does.
    """
    Thread(target=_end_with_input, daemon=True).start()
    return Wanted(**json.loads(sys.argv[1]))


def tries(how: Wanted) -> Iterator[Try]:
    """
    Consecutive attempts at transactions.
    """
    chance = Random(how.seed)
    for number in count():
        aborts = chance.randrange(ABORTS) == 0
        mark = f"{how.id}/{how.seed}/{number}/{'abort' if aborts else 'commit'}"
        yield Try(mark, aborts, chance.uniform(0, DAWDLE_S))


def tell(event: str, **of_it: Any) -> None:
    sys.stdout.write(json.dumps({"told": event, **of_it}) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)
