"""
A task that writes its rows in the transaction of the batch.

Spark may run a task twice, one after the other or both at once, and what one has written cannot be told from what it
has not. So the first to begin is the only one to write: each asks for the next epoch of a transactional id that the
task has for this alone, and only one gets the one that follows on the driver's. What a task has to say comes back as a
row. It does not raise, for Spark would try it again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from kgateway.client.cluster import Cluster
from kgateway.client.outgoing import Producing
from kgateway.client.transacting import begin
from kgateway.spark.failures import Unwritten
from kgateway.spark.writing import Writing

TOLD = "records long, problem string"
BEGUN_BEFORE = "begun before"
_TIMEOUT_MS = 60_000  # of transactions that are never open


@dataclass(frozen=True, slots=True)
class Task:
    """
    Where the rows go, and as whom; and of each task whom its first run follows.
    """

    writing: Writing
    producing: Producing
    turns: Mapping[int, Producing]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """
        Write them; how many that were, or why they could not be written.
        """
        records, problem = 0, None
        try:
            if self._is_first():
                records = self.writing.write(batches, self.producing)
            else:
                problem = BEGUN_BEFORE
        except Unwritten as error:
            problem = str(error)
        told = {"records": pa.array([records]), "problem": pa.array([problem], pa.string())}
        yield pa.RecordBatch.from_pydict(told)

    def _is_first(self) -> bool:
        context = TaskContext.get()
        assert context
        before = self.turns[context.partitionId()]
        assert before.transactional_id
        with self.writing.telling(), self.writing.reached() as cluster:
            now = _next(cluster, before.transactional_id)
        return now == before._replace(epoch=before.epoch + 1)


def turns(cluster: Cluster, transactional_id: str, tasks: int) -> dict[int, Producing]:
    """
    Whom the tasks follow.
    """
    return {number: _next(cluster, f"{transactional_id}-{number}") for number in range(tasks)}


def _next(cluster: Cluster, transactional_id: str) -> Producing:
    return begin(cluster, transactional_id, _TIMEOUT_MS).producing
