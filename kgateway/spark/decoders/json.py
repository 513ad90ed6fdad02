"""
JSON to typed columns: all values of a column at once, by Arrow's own reader.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructType

from kgateway.spark.decoders.ddl import parse_ddl
from kgateway.spark.errors import WrongOption

_SIMPLE = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating)


@dataclass(frozen=True)
class JsonDecoder:
    """
    Decodes objects. Fields that the schema does not name are ignored; missing fields are null. The field `corrupt` has
    the text of a malformed value, as in Spark, if the schema has it.
    """

    type: pa.StructType
    corrupt: str = ""

    def decode(self, column: pa.Array) -> pa.Array:
        if len(column) == 1:
            return self._decode_one(column[0].as_py())
        found = self._at_once(column, self._fields)
        if found is None:
            raise ValueError("one of the values does not match the schema")
        return self._rows(found, [None] * len(column))

    def doubtful(self, column: pa.Array) -> np.ndarray:
        return np.array([not self._is_plain(value) for value in column.to_pylist()])

    def salvage(self, value: bytes) -> pa.Array:
        """
        The fields that match the schema, as Spark does.
        """
        return self._rows(self._one(value)[0], [value.decode(errors="replace")])

    def _is_plain(self, value: bytes) -> bool:
        try:
            return value.startswith(b"{") and _matches(json.loads(value), pa.struct(self._fields))
        except ValueError:
            return False

    def _decode_one(self, value: bytes) -> pa.Array:
        if not value.strip():  # null, as in Spark
            return pa.nulls(1, self.type)
        found, problem = self._one(value)
        if problem:
            raise ValueError(f"{value[:60]!r} does not match the schema: {problem}")
        return self._rows(found, [None])

    @property
    def _fields(self) -> list[pa.Field]:
        return [field for field in self.type if field.name != self.corrupt]

    def _rows(self, found: dict[str, pa.Array], malformed: list[str | None]) -> pa.Array:
        columns = found | {self.corrupt: pa.array(malformed, pa.string())}
        return pa.StructArray.from_arrays([columns[field.name] for field in self.type], fields=list(self.type))

    def _at_once(self, column: pa.Array, fields: Iterable[pa.Field]) -> dict[str, pa.Array] | None:
        """
        The fields of all values, or None if a value is malformed, or needs to be looked at alone.
        """
        count = len(column)
        schema = pa.schema(list(fields))
        if not count:
            return {field.name: pa.array([], field.type) for field in schema}
        # Arrow's reader crashes if the first value is null (pyarrow 26), so all values must start like objects.
        if not pc.all(pc.starts_with(column, b"{")).as_py():
            return None
        lines = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), column)
        joined = pc.binary_join(lines, b"\n")[0].as_buffer()
        options = ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore", newlines_in_values=True)
        try:
            table = read_json(
                pa.BufferReader(joined), ReadOptions(use_threads=False, block_size=joined.size + 1), options
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != count:  # a value is no object, or is two
            return None
        return {field.name: table.column(field.name).combine_chunks().cast(field.type) for field in schema}

    def _one_field(self, field: pa.Field, value: Any) -> dict[str, pa.Array] | None:
        """
        A column of one value, or None if it is of another type. Texts take any JSON, as in Spark.
        """
        if pa.types.is_string(field.type) and value is not None and not isinstance(value, str):
            value = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        if value is None:
            return {field.name: pa.nulls(1, field.type)}
        if not _matches(value, field.type):
            return None
        if any(is_simple(field.type) for is_simple in _SIMPLE):  # without the cost of a reader
            return {field.name: pa.array([value], field.type)}
        return self._at_once(pa.array([json.dumps({field.name: value}).encode()]), [field])

    def _one(self, value: bytes) -> tuple[dict[str, pa.Array], str]:
        """
        The fields of one value, null where they do not match the schema, and what is wrong.
        """
        problem, parsed = "", {}
        try:
            parsed = json.loads(value)
        except ValueError as error:
            problem = str(error)
        if not isinstance(parsed, dict):
            problem, parsed = problem or "it is not an object", {}
        found: dict[str, pa.Array] = {}
        for field in self._fields:
            column = self._one_field(field, parsed.get(field.name))
            if column is None:
                problem = problem or f"the field {field.name} is not of type {field.type}"
                column = {field.name: pa.nulls(1, field.type)}
            found |= column
        return found, problem


def _matches(value: Any, kind: pa.DataType) -> bool:
    """
    Whether a value of JSON looks as if it were of this type. Arrow's reader decides.
    """
    if value is None:
        return True
    if pa.types.is_struct(kind):
        return isinstance(value, dict) and all(_matches(value.get(field.name), field.type) for field in kind)
    if pa.types.is_list(kind):
        return isinstance(value, list) and all(_matches(one, kind.value_type) for one in value)
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_integer(kind):
        return type(value) is int and -1 <= value >> kind.bit_width - 1 <= 0
    if pa.types.is_floating(kind):
        return type(value) in (int, float)
    return isinstance(value, str)


def json_decoder(schema: str, corrupt: str = "") -> JsonDecoder:
    """
    The decoder of a schema as DDL, or in the form of `StructType.json()`. All fields are nullable, as in Spark.
    """
    if schema.lstrip().startswith("{"):
        struct = StructType.fromJson(json.loads(schema))
    else:
        try:
            struct = parse_ddl(schema)
        except ValueError as error:
            raise WrongOption(f"{schema!r} is not a schema: {error}") from error
    if corrupt in struct.fieldNames() and not isinstance(struct[corrupt].dataType, StringType):
        raise WrongOption(f"the column {corrupt} must be a string: malformed values are stored there")
    return JsonDecoder(to_arrow_type(struct.toNullable(), timezone="UTC"), corrupt)
