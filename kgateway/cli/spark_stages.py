"""
How far Spark is with what it was asked for, shown to who waits at a terminal.
"""

from contextlib import AbstractContextManager
from functools import partial
from threading import Event
from typing import Any

from kgateway.cli.spark_progress import Progress, watching

_LOOK_S = 0.5


def stages(spark: Any, what: str) -> AbstractContextManager[None]:
    """
    Draw how many tasks are done of what Spark is working on, for as long as it does.
    """
    return watching(partial(_watch, spark.sparkContext.statusTracker(), what))


def _watch(tracker: Any, what: str, over: Event) -> None:
    seen: dict[int, tuple[int, int]] = {}
    with Progress(what, "tasks") as progress:
        while not over.wait(_LOOK_S):
            active = {number: tracker.getStageInfo(number) for number in tracker.getActiveStageIds()}
            seen = {number: (of, of) for number, (_, of) in seen.items()}
            seen |= {number: (one.numCompletedTasks, one.numTasks) for number, one in active.items() if one}
            if seen:
                progress.done(sum(done for done, _ in seen.values()), sum(of for _, of in seen.values()))
