"""
JSON to typed columns: all values of a column at once, by Arrow's own reader.
"""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json

from kgateway.spark.decoders.arrays import where_there


@dataclass(frozen=True)
class JsonDecoder:
    """
    Decodes objects. Fields that the schema does not name are ignored; missing fields are null.
    """

    type: pa.StructType

    def decode(self, column: pa.Array) -> pa.Array:
        return where_there(column, self._decode)

    def _decode(self, column: pa.Array) -> pa.Array:
        count = len(column)
        if not count:
            return pa.array([], self.type)
        # Arrow's reader crashes if the first value is null (pyarrow 26), so all values must start like objects.
        if not pc.all(pc.starts_with(column, b"{")).as_py():
            return self._one_by_one(column)
        lines = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), column)
        joined = pc.binary_join(lines, b"\n")[0].as_buffer()
        options = ParseOptions(
            explicit_schema=pa.schema(list(self.type)), unexpected_field_behavior="ignore", newlines_in_values=True
        )
        try:
            table = read_json(
                pa.BufferReader(joined), ReadOptions(use_threads=False, block_size=joined.size + 1), options
            )
        except pa.ArrowInvalid:
            return self._one_by_one(column)
        if table.num_rows != count:  # a value is no object, or is two
            return self._one_by_one(column)
        [found] = table.to_struct_array().chunks
        return found.cast(self.type)

    def _one_by_one(self, column: pa.Array) -> pa.Array:
        """
        Decode value by value, so that the error names the invalid one.
        """
        names = [field.name for field in self.type]
        rows = []
        for value in column.to_pylist():
            try:
                rows.append(_row(json.loads(value), names))
                pa.array(rows[-1:], self.type)
            except (ValueError, TypeError, pa.ArrowException) as error:
                raise ValueError(f"{value[:60]!r} is no JSON of the schema: {error}") from None
        return pa.array(rows, self.type)


def _row(value: Any, names: list[str]) -> dict[str, Any]:
    if value is None:  # as Arrow's reader does
        value = {}
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return {name: value.get(name) for name in names}


def json_decoder(schema: str) -> JsonDecoder:
    """
    The decoder of a schema in the form of `StructType.json()`.
    """
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructType

    return JsonDecoder(to_arrow_type(StructType.fromJson(json.loads(schema)), timezone="UTC"))
