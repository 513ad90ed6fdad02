"""
The columns of a topic, which are those of Spark's own Kafka source in its order and with its types, and the formats
that give keys and values other types.

A decoder takes a whole column, so that it may work by column. One that knows a record's type only by the id in front of
it, as with a schema registry, would group the rows by that first.
"""

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from kgateway.spark.decoders.avro import avro_decoder
from kgateway.spark.decoders.json import json_decoder
from kgateway.spark.errors import WrongOption
from kgateway.spark.options import Options

HEADERS = "headers"
HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    HEADERS: pa.list_(pa.field("element", HEADER)),
}
_COLUMNS = ("key", "value")


def kafka_columns(*, with_headers: bool) -> list[str]:
    return [name for name in TYPES if with_headers or name != HEADERS]


class ValueDecoder(Protocol):
    """
    Decodes keys or values. It is sent to tasks with the query, so it must be picklable.
    """

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, column: pa.Array) -> pa.Array:
        """
        Decode the column; null stays null. ValueError if a value does not match the schema.
        """


FORMATS: dict[str, Callable[[str], ValueDecoder]] = {
    "avro": avro_decoder,
    "json": json_decoder,
}  # each takes the text of a schema


def decoders_of(options: Options) -> dict[str, ValueDecoder]:
    found = {}
    for column in _COLUMNS:
        form, schema = f"{column}.format", f"{column}.schema"
        if options.has(form):
            make = options.choice(form, FORMATS, "")
            found[column] = options.parsed(schema, make, f"a schema for {options.text(form)}")
        elif options.has(schema):
            raise WrongOption(f"{schema} is given without {form}")
    return found
