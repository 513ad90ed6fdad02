"""
Writes each batch of a stream in one transaction, which also commits the number of the batch.

A batch that was interrupted is tried again with the same number. Whoever begins it fences a driver that still runs, and
its tasks. The number that was committed last says whether the batch is in the topics already.

Spark may run a task twice, one after the other or both at once, and what one has written cannot be told from what it
has not. So only the first to begin may write: each asks for the next epoch of a transactional id that the task has for
this purpose alone, and only one gets the epoch after the driver's. A task returns its result as a row. It does not
raise, or Spark would try it again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.group_offsets import committed_offsets
from kgateway.client.send_queue import ProducerIdentity
from kgateway.client.transactions import Transaction, begin_transaction
from kgateway.spark.errors import Unwritten, WrongOption
from kgateway.spark.options import ONCE, Options
from kgateway.spark.writers.partition_rows import partitioned
from kgateway.spark.writers.writer import TopicWriter, topic_writer_of
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError

RESULT = "records long, problem string"
BEGUN_BEFORE = "begun before"
_TIMEOUT_MS = 60_000  # of transactions that are never opened
_QUERY = "sql.streaming.queryId"
_PREFIX = "kgateway-spark-"  # of transactional ids, and of the group that keeps the number
_SINK_TIMEOUT_MS = 900_000  # the most that Kafka allows by default
_TRIES = 4


@dataclass(frozen=True, slots=True)
class WriteTask:
    """
    Writes rows as one producer. `turns` has for each task the producer epoch that its first run follows.
    """

    writing: TopicWriter
    producing: ProducerIdentity
    turns: Mapping[int, ProducerIdentity]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """
        Write the rows; returns their number, or the reason of a failure.
        """
        records, problem = 0, None
        try:
            if self._is_first():
                records = self.writing.write(batches, self.producing)
            else:
                problem = BEGUN_BEFORE
        except Unwritten as error:
            problem = str(error)
        results = {"records": pa.array([records]), "problem": pa.array([problem], pa.string())}
        yield pa.RecordBatch.from_pydict(results)

    def _is_first(self) -> bool:
        context = TaskContext.get()
        assert context
        before = self.turns[context.partitionId()]
        assert before.transactional_id
        with self.writing.raising_unwritten(), self.writing.cluster() as cluster:
            now = _next(cluster, before.transactional_id)
        return now == before._replace(epoch=before.epoch + 1)


def first_epochs(cluster: Cluster, transactional_id: str, tasks: int) -> dict[int, ProducerIdentity]:
    return {number: _next(cluster, f"{transactional_id}-{number}") for number in range(tasks)}


def _next(cluster: Cluster, transactional_id: str) -> ProducerIdentity:
    return begin_transaction(cluster, transactional_id, _TIMEOUT_MS).producing


def exactly_once(**options: str) -> Callable[[DataFrame, int], None]:
    """
    A function for `foreachBatch` that writes each record of a stream exactly once.
    """
    return Sink(options)


class Sink:
    def __init__(self, given: Mapping[str, str]) -> None:
        self._options = options = Options(given, ONCE)
        self._guard = TopicPartition(options.text("guardTopic") or options.text("topic"), 0)
        if not self._guard.topic:
            raise WrongOption("if rows name their topics, name one for the number of the last batch with guardTopic")
        self._timeout_ms = options.number("kafka.transaction.timeout.ms", _SINK_TIMEOUT_MS)

    def __call__(self, frame: DataFrame, number: int) -> None:
        name = _PREFIX + _query_of(frame)
        writing = topic_writer_of(self._options, to_arrow_schema(frame.schema, timezone="UTC"))
        with writing.raising_unwritten(), writing.cluster() as cluster:
            for _ in range(_TRIES):
                transaction = begin_transaction(cluster, name, self._timeout_ms)
                if self._is_written(cluster, name, number) or self._write(frame, number, transaction, writing):
                    return
        raise Unwritten(
            f"batch {number} could not be written: in each of {_TRIES} attempts Spark restarted a task, as it does "
            "when machines fail, or with spark.speculation"
        )

    def _is_written(self, cluster: Cluster, name: str, number: int) -> bool:
        found = cluster.retry(lambda: committed_offsets(cluster, name, stable=True), reconnect=True).get(self._guard)
        following = found.offset if found else 0
        if following > number + 1:
            raise Unwritten(
                f"batch {number} is repeated after batch {following - 1} was written: the checkpoint is older than "
                "the content of the topics. With another checkpoint the query starts from the beginning; the group "
                f"{name} has the number"
            )
        return following == number + 1

    def _write(self, frame: DataFrame, number: int, transaction: Transaction, writing: TopicWriter) -> bool:
        """
        Returns False if Spark has begun a task twice: the transaction is aborted then.
        """
        try:
            results = _run(frame, number, transaction, writing)
            _check(results)
            is_whole = all(row.problem is None for row in results)
            if is_whole:
                note = f"{sum(row.records for row in results)} records"
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
    with suppress(KafkaError, Unanswered):  # nothing may be open yet, and the next to begin aborts it
        transaction.end(commits=False)


def _run(frame: DataFrame, number: int, transaction: Transaction, writing: TopicWriter) -> list[Any]:
    tasks = int(frame.sparkSession.sparkContext.defaultParallelism)
    task = WriteTask(writing, transaction.producing, first_epochs(transaction.cluster, transaction.id, tasks))

    # A plain function: Spark would take the annotated __call__ for another kind of UDF.
    def run(batches: Any) -> Any:
        return task(batches)

    return [*partitioned(frame, number, writing, tasks).mapInArrow(run, RESULT).collect()]


def _check(results: Iterable[Any]) -> None:
    for row in results:
        if row.problem not in {None, BEGUN_BEFORE}:
            raise Unwritten(row.problem)


def _query_of(frame: DataFrame) -> str:
    """
    The query's id, which its checkpoint keeps.
    """
    query = frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
    if not query:
        raise WrongOption("exactly_once is for writeStream.foreachBatch: it was called outside of a query")
    return str(query)
