"""
Writes each batch of a stream in one transaction, which commits the number of the batch, too.

A batch that was cut off comes again with the same number. Whoever begins it is the only one from then on: a driver that
is not dead yet, and its tasks, can write no more. Then the number that was committed last says whether the batch is in
the topics already.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.offsets import Partition, committed
from kgateway.client.transacting import Transaction, begin
from kgateway.spark.exactly_once.placing import apart
from kgateway.spark.exactly_once.task import BEGUN_BEFORE, TOLD, Task, turns
from kgateway.spark.failures import Unwritten, WrongOption
from kgateway.spark.options import ONCE, Options
from kgateway.spark.writing import Writing, writing_of
from kgateway.wire.errors import KafkaError

_QUERY = "sql.streaming.queryId"
_PREFIX = "kgateway-spark-"  # of transactional ids, and of the group that keeps the number
_TIMEOUT_MS = 900_000  # the most that Kafka allows unless it is told otherwise
_TRIES = 4


def exactly_once(**options: str) -> Callable[[DataFrame, int], None]:
    """
    What `foreachBatch` is given, to write each record of a stream once.
    """
    return Sink(options)


class Sink:
    """
    Topics that a stream is written to.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._options = options = Options(given, ONCE)
        self._guard = Partition(options.text("guardTopic") or options.text("topic"), 0)
        if not self._guard.topic:
            raise WrongOption("where rows name their topics, name one for the number of the last batch by guardTopic")
        self._timeout_ms = options.number("kafka.transaction.timeout.ms", _TIMEOUT_MS)

    def __call__(self, frame: DataFrame, number: int) -> None:
        """
        Have the rows of this batch in the topics, once.
        """
        name = _PREFIX + _query_of(frame)
        writing = writing_of(self._options, to_arrow_schema(frame.schema, timezone="UTC"))
        with writing.telling(), writing.reached() as cluster:
            for _ in range(_TRIES):
                transaction = begin(cluster, name, self._timeout_ms)
                if self._is_written(cluster, name, number) or self._write(frame, number, transaction, writing):
                    return
        raise Unwritten(
            f"batch {number} could not be written: in each of {_TRIES} tries Spark began a task again, as it does "
            "where machines go, and with spark.speculation"
        )

    def _is_written(self, cluster: Cluster, name: str, number: int) -> bool:
        found = cluster.kept_up(lambda: committed(cluster, name, stable=True)).get(self._guard)
        following = found.offset if found else 0
        if following > number + 1:
            raise Unwritten(
                f"batch {number} comes again after batch {following - 1} was written: the checkpoint is older than "
                f"what is in the topics. With another checkpoint the query begins anew; the group {name} has the number"
            )
        return following == number + 1

    def _write(self, frame: DataFrame, number: int, transaction: Transaction, writing: Writing) -> bool:
        """
        Whether it is written for good: not so where Spark has begun a task twice.
        """
        try:
            told = _run(frame, number, transaction, writing)
            _check(told)
            is_whole = all(row.problem is None for row in told)
            if is_whole:
                note = f"{sum(row.records for row in told)} records"
                transaction.commit_offset(transaction.id, self._guard, number + 1, note)
        except BaseException:
            _abort(transaction)
            raise
        if is_whole:
            transaction.end(commits=True)
        else:
            _abort(transaction)
        return is_whole


def _abort(transaction: Transaction) -> None:
    with suppress(KafkaError, Unanswered):  # nothing may be open yet, and whoever begins next aborts it
        transaction.end(commits=False)


def _run(frame: DataFrame, number: int, transaction: Transaction, writing: Writing) -> list[Any]:
    """
    What all tasks say.
    """
    tasks = int(frame.sparkSession.sparkContext.defaultParallelism)
    task = Task(writing, transaction.producing, turns(transaction.cluster, transaction.id, tasks))

    # Without an annotation of its own Spark would take the class for another kind of function.
    def run(batches: Any) -> Any:
        return task(batches)

    return [*apart(frame, number, writing, tasks).mapInArrow(run, TOLD).collect()]


def _check(told: Iterable[Any]) -> None:
    for row in told:
        if row.problem not in {None, BEGUN_BEFORE}:
            raise Unwritten(row.problem)


def _query_of(frame: DataFrame) -> str:
    """
    The query's name for good, which its checkpoint keeps.
    """
    query = frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
    if not query:
        raise WrongOption("exactly_once is for writeStream.foreachBatch: there is no query here")
    return str(query)
