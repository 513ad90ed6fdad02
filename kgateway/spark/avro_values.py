"""
Avro to typed columns: by column where the schema allows it, else value by value with fastavro.
"""

import io
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kgateway.spark.avro_nodes import Source
from kgateway.spark.avro_schemas import node_of, type_of
from kgateway.spark.nulls import where_there
from kgateway.spark.varints import TooLong


@dataclass(frozen=True)
class AvroDecoder:
    """
    Decodes values that were written with this schema, without any frame around them.
    """

    schema: str

    @cached_property
    def type(self) -> pa.DataType:
        return type_of(self._parsed)

    def decode(self, column: pa.Array) -> pa.Array:
        return where_there(column, self._one_by_one if self._node is None else self._by_column)

    @cached_property
    def _parsed(self) -> Any:
        return json.loads(self.schema)

    @cached_property
    def _node(self) -> Any:
        return node_of(self._parsed)

    def _by_column(self, column: pa.Array) -> pa.Array:
        _, offsets, buffer = column.buffers()
        if not len(column) or buffer is None:
            return self._one_by_one(column)
        borders = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
        try:
            # No further than the last value: a step that leads out of it is one too far.
            data = np.frombuffer(buffer, np.uint8)[: borders[-1]]
            make, at = self._node.step(Source(data, buffer), borders[:-1])
            if not np.array_equal(at, borders[1:]):
                raise IndexError("it ends elsewhere")
            return make()
        except (IndexError, TooLong, pa.ArrowInvalid):
            return self._one_by_one(column)  # which says what it is

    def _one_by_one(self, column: pa.Array) -> pa.Array:
        from fastavro import parse_schema, schemaless_reader

        schema = parse_schema(self._parsed)
        rows = []
        for value in column.to_pylist():
            source = io.BytesIO(value)
            try:
                rows.append(schemaless_reader(source, schema, None))
            except Exception as error:  # of many kinds
                raise ValueError(f"{value[:40]!r} is no Avro of the schema: {error or type(error).__name__}") from None
            if source.read(1):
                raise ValueError(f"{value[:40]!r} is longer than Avro of the schema is")
        return pa.array(rows, self.type)


def avro_decoder(schema: str) -> AvroDecoder:
    """
    The decoder for a schema, which is JSON.
    """
    decoder = AvroDecoder(schema)
    if decoder.type is None or not schema:
        raise ValueError(schema)
    return decoder
