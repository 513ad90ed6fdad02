"""
The columns of a topic: those of Spark's own Kafka source, in its order and with its types.
"""

import pyarrow as pa

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


def kafka_columns(*, with_headers: bool) -> list[str]:
    """
    The names of the columns that every topic has.
    """
    return [name for name in TYPES if with_headers or name != HEADERS]


def arrow_schema(names: list[str]) -> pa.Schema:
    """
    These columns, as Arrow has them.
    """
    return pa.schema([pa.field(name, TYPES[name]) for name in names])
