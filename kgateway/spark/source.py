"""
The data source `kgateway`, as Spark finds it: topics of a cluster, or of a data folder, as tables and streams.

    spark.read.format("kgateway").options(**{"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}).load()

Filters are not pushed down: PySpark 4.3 keeps one plan for all uses of a DataFrame, and would give one query the rows
of another. Options say what is read.
"""

from typing import Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from kgateway.spark.errors import WrongOption
from kgateway.spark.options import READ, STREAM, WRITE, Options
from kgateway.spark.query import Query, query_of, read_spec_of
from kgateway.spark.readers.offset_bounds import ending, starting
from kgateway.spark.readers.reader import BatchReader, StreamReader
from kgateway.spark.writers.writer import BatchWriter, StreamWriter, topic_writer_of

_ZONE = "UTC"  # of timestamps, on their way between Spark and Arrow


class KGateway(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kgateway"

    def schema(self) -> StructType:
        use = STREAM if "maxOffsetsPerTrigger" in self.options else READ
        return from_arrow_schema(read_spec_of(Options(self.options, use)).schema)

    def reader(self, schema: StructType) -> BatchReader:
        options = Options(self.options, READ)
        return BatchReader(_query(options, schema), starting(options, "earliest"), ending(options))

    def streamReader(self, schema: StructType) -> StreamReader:
        options = Options(self.options, STREAM)
        most = options.number("maxOffsetsPerTrigger", 0)
        return StreamReader(_query(options, schema), starting(options, "latest"), most)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        if overwrite:
            raise WrongOption("records cannot be overwritten: write with mode('append')")
        return BatchWriter(topic_writer_of(Options(self.options, WRITE), to_arrow_schema(schema, timezone=_ZONE)))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        if overwrite:
            raise WrongOption("records cannot be overwritten: write with outputMode('append'), or by foreachBatch")
        return StreamWriter(topic_writer_of(Options(self.options, WRITE), to_arrow_schema(schema, timezone=_ZONE)))


def _names(schema: StructType) -> list[str]:
    return [field.name for field in schema.fields]


def _query(options: Options, schema: StructType) -> Query:
    """
    The query of the columns that this schema names: a schema that the user gives is a choice of columns.
    """
    every = read_spec_of(options, {**dict.fromkeys(read_spec_of(options).names), "headers": None}).schema
    given = to_arrow_schema(schema, timezone=_ZONE)
    for field in given:
        known: Any = every.field(field.name) if field.name in every.names else None
        if known is None:
            raise WrongOption(f"there is no column {field.name}; choose from {', '.join(every.names)}")
        if known.type != field.type:
            raise WrongOption(f"the column {field.name} is of type {known.type}, not {field.type}")
    return query_of(options, given.names)
