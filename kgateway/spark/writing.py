"""
Rows of Spark into topics: the columns are those that Spark's own Kafka sink takes, and so is what may be left out.

A task is done when all its records are acknowledged. One that is tried again writes them again, so what comes is there
at least once; `exactly_once` is for who wants more.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kgateway.client.address import Address
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.outgoing import Outgoing, Producing
from kgateway.client.producer import ACKS, Producer, Undelivered
from kgateway.client.transacting import Transaction
from kgateway.records.compression import Codec
from kgateway.spark.failures import Unwritten, WrongOption
from kgateway.spark.options import Options
from kgateway.wire.errors import ErrorCode, KafkaError

_ROW = ("key", "value", "headers", "partition", "topic")
_ONLY_READ = {"offset", "timestamp", "timestampType"}  # they come with rows that were read from a topic
_TEXTS = (pa.types.is_string, pa.types.is_large_string)
_BYTES = (*_TEXTS, pa.types.is_binary, pa.types.is_large_binary)
_CHECKS = {"key": _BYTES, "value": _BYTES, "topic": _TEXTS, "partition": (pa.types.is_int32,)}
_TYPES = {"key": "a string or binary", "value": "a string or binary", "topic": "a string", "partition": "an int"}
_CODECS = {codec.name.lower(): codec for codec in Codec}
_DURABLE = {"1": ACKS["1"], "all": ACKS["all"], "-1": ACKS["all"]}
_S = 1_000  # in milliseconds


@dataclass(frozen=True, slots=True)
class Writing:
    """
    Where records go, and how.
    """

    bootstrap: tuple[Address, ...]
    topic: str | None
    acks: int
    codec: Codec
    answer_s: float

    def write(self, batches: Iterable[pa.RecordBatch], producing: Producing | None = None) -> int:
        """
        Write them all, in the transaction of this producer if there is one; how many records that were.
        """
        with self.telling(), self.reached() as cluster:
            return self._write(cluster, batches, Transaction(cluster, producing) if producing else None)

    def reached(self) -> Cluster:
        """
        The servers, as soon as one answers.
        """
        return Cluster.reached(self.bootstrap, self.answer_s)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """
        What goes wrong, in words.
        """
        try:
            yield
        except KafkaError as error:
            reason = error.message or error.code.meaning
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                reason = f"{reason}; a topic has to be there before it is written to"
            raise Unwritten(f"records could not be written: {reason} ({error.code.name})") from error
        except (Unanswered, Undelivered) as error:
            raise Unwritten(f"records could not be written: {error}") from error

    def _write(self, cluster: Cluster, batches: Iterable[pa.RecordBatch], transaction: Transaction | None) -> int:
        producers: dict[str, Producer] = {}
        for topic, record in self._records(batches):
            producer = producers.get(topic)
            if producer is None:
                producer = producers[topic] = Producer(cluster, topic, self.acks, self.codec, transaction)
            producer.send(record)
        for producer in producers.values():
            producer.flush()
        return sum(producer.records for producer in producers.values())

    def _records(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Outgoing]]:
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
                    Outgoing(_bytes(key), _bytes(value), now_ms, _headers(headers), partition, ("row", number)),
                )


def writing_of(options: Options, schema: pa.Schema) -> Writing:
    """
    What the options say, for rows of this form.
    """
    topic = options.text("topic") or None
    _check(schema, topic)
    if not options.has("kafka.bootstrap.servers"):
        raise WrongOption("say where to write to: kafka.bootstrap.servers names servers")
    return Writing(
        bootstrap=options.addresses(),
        topic=topic,
        acks=options.choice("kafka.acks", _DURABLE, "all"),
        codec=options.choice("kafka.compression.type", _CODECS, "none"),
        answer_s=options.number("kafka.request.timeout.ms", 30 * _S) / _S,
    )


def _check(schema: pa.Schema, topic: str | None) -> None:
    """
    Refuse columns that records cannot be made of.
    """
    for field in schema:
        if field.name not in _ROW and field.name not in _ONLY_READ:
            raise WrongOption(f"a record has no place for the column {field.name}, but for {', '.join(_ROW)}")
        if field.name in _CHECKS and not any(fits(field.type) for fits in _CHECKS[field.name]):
            raise WrongOption(f"the column {field.name} is of type {field.type}: it has to be {_TYPES[field.name]}")
    if "value" not in schema.names:
        raise WrongOption("rows have no column value")
    if topic is None and "topic" not in schema.names:
        raise WrongOption("say which topic is written to, by the option topic or a column of that name")


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _headers(headers: list[dict[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple([(one["key"], one["value"]) for one in headers]) if headers else ()
