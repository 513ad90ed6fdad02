"""
Tasks in Spark: each is a value with `run`, and so is what it gives.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from kgateway.spark.failures import DataLost, Unreadable
from kgateway.wire.errors import KafkaError
from kgateway.wire.malformed import Malformed

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Runs(Protocol[T_co]):
    """
    What a task does.
    """

    def run(self) -> T_co:
        """
        Do it.
        """


def run_all(spark: Any, tasks: Sequence[Runs[T]]) -> list[T]:
    """
    What they give, in their order. Where one cannot be done, that is told in its words.
    """
    if not tasks:
        return []
    found = spark.sparkContext.parallelize(tasks, len(tasks)).map(_told).collect()
    for _, failure in found:
        if failure is not None:
            raise Unreadable(failure)
    return [result for result, _ in found]


def _told(task: Runs[T]) -> tuple[T | None, str | None]:
    """
    What cannot be read is not tried again by Spark: it was tried for long enough.
    """
    try:
        return task.run(), None
    except (DataLost, KafkaError, Malformed, OSError, Unreadable) as error:
        return None, str(error)
