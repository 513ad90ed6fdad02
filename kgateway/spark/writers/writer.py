"""
Writes rows of Spark into topics. The columns, and which of them may be left out, are those of Spark's own Kafka sink.

A task is done when all its records are acknowledged. A task that is tried again writes them again, so records are there
at least once; `exactly_once` gives more.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address, Unanswered
from kgateway.client.producer import ACKS, Producer, Undelivered
from kgateway.client.send_queue import OutgoingRecord, ProducerIdentity
from kgateway.client.transactions import Transaction
from kgateway.records.compression import Codec
from kgateway.spark.errors import Unwritten, WrongOption
from kgateway.spark.options import Options
from kgateway.wire.errors import ErrorCode, KafkaError

_ROW = ("key", "value", "headers", "partition", "topic")
_ONLY_READ = {"offset", "timestamp", "timestampType"}  # rows that were read from a topic have them
_TEXTS = (pa.types.is_string, pa.types.is_large_string)
_BYTES = (*_TEXTS, pa.types.is_binary, pa.types.is_large_binary)
_CHECKS = {"key": _BYTES, "value": _BYTES, "topic": _TEXTS, "partition": (pa.types.is_int32,)}
_TYPES = {"key": "a string or binary", "value": "a string or binary", "topic": "a string", "partition": "an int"}
_CODECS = {codec.name.lower(): codec for codec in Codec}
_DURABLE = {"1": ACKS["1"], "all": ACKS["all"], "-1": ACKS["all"]}
_S = 1_000  # in milliseconds


@dataclass(frozen=True, slots=True)
class TopicWriter:
    bootstrap: tuple[Address, ...]
    topic: str | None
    acks: int
    codec: Codec
    answer_s: float

    def write(self, batches: Iterable[pa.RecordBatch], producing: ProducerIdentity | None = None) -> int:
        """
        Write all rows, in the producer's transaction if there is one; returns their number.
        """
        with self.raising_unwritten(), self.cluster() as cluster:
            return self._write(cluster, batches, Transaction(cluster, producing) if producing else None)

    def cluster(self) -> Cluster:
        return Cluster(self.bootstrap, self.answer_s)

    @contextmanager
    def raising_unwritten(self) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            reason = error.message or error.code.meaning
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                reason = f"{reason}, and the server creates none automatically"
            raise Unwritten(f"records could not be written: {reason} ({error.code.name})") from error
        except (Unanswered, Undelivered) as error:
            raise Unwritten(f"records could not be written: {error}") from error

    def _write(self, cluster: Cluster, batches: Iterable[pa.RecordBatch], transaction: Transaction | None) -> int:
        producers: dict[str, Producer] = {}
        for topic, record in self._records(batches):
            producer = producers.get(topic)
            if producer is None:
                producer = producers[topic] = Producer(
                    cluster, topic, self.acks, self.codec, transaction, may_create=True
                )
            producer.send(record)
        for producer in producers.values():
            producer.flush()
        return sum(producer.records for producer in producers.values())

    def _records(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, OutgoingRecord]]:
        number = 0
        for batch in batches:
            now_ms = int(time.time() * _S)
            nothing = [None] * batch.num_rows
            columns = [batch.column(name).to_pylist() if name in batch.schema.names else nothing for name in _ROW]
            for key, value, headers, partition, topic in zip(*columns, strict=True):
                number += 1
                chosen = self.topic or topic
                if not chosen:
                    raise Unwritten(f"row {number} of a task has no topic")
                yield (
                    chosen,
                    OutgoingRecord(_bytes(key), _bytes(value), now_ms, _headers(headers), partition, ("row", number)),
                )


def topic_writer_of(options: Options, schema: pa.Schema) -> TopicWriter:
    topic = options.text("topic") or None
    _check(schema, topic)
    if not options.has("kafka.bootstrap.servers"):
        raise WrongOption("name the servers to write to with kafka.bootstrap.servers")
    return TopicWriter(
        bootstrap=options.addresses(),
        topic=topic,
        acks=options.choice("kafka.acks", _DURABLE, "all"),
        codec=options.choice("kafka.compression.type", _CODECS, "none"),
        answer_s=options.number("kafka.request.timeout.ms", 30 * _S) / _S,
    )


def _check(schema: pa.Schema, topic: str | None) -> None:
    """
    Refuse columns that cannot become records.
    """
    for field in schema:
        if field.name not in _ROW and field.name not in _ONLY_READ:
            raise WrongOption(f"a record has no field for the column {field.name}, only for {', '.join(_ROW)}")
        if field.name in _CHECKS and not any(fits(field.type) for fits in _CHECKS[field.name]):
            raise WrongOption(f"the column {field.name} is of type {field.type}: it must be {_TYPES[field.name]}")
    if "value" not in schema.names:
        raise WrongOption("rows have no column value")
    if topic is None and "topic" not in schema.names:
        raise WrongOption("name the topic to write to with the option topic or a column of that name")


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _headers(headers: list[dict[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple([(header["key"], header["value"]) for header in headers]) if headers else ()


@dataclass
class WriteResult(WriterCommitMessage):
    records: int


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, writing: TopicWriter) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriteResult:
        return WriteResult(self._writing.write(iterator))


class StreamWriter(DataSourceStreamArrowWriter):
    """
    Writes the batches of a stream. Spark makes a new one for each batch, and for its commit.
    """

    def __init__(self, writing: TopicWriter) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriteResult:
        return WriteResult(self._writing.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, Spark's name
        pass  # each task had its records acknowledged

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, Spark's name
        pass  # records remain in the topic; the batch is tried again
