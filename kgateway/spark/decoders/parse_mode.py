"""
What becomes of malformed keys and values, in the words of Spark's option `mode`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import pyarrow as pa

from kgateway.spark.decoders.arrays import where_there

Columns = dict[str, pa.Array]


class ParseMode(StrEnum):
    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"
    FAILFAST = "FAILFAST"


class ValueDecoder(Protocol):
    """
    Decodes keys or values. It is sent to tasks with the query, so it must be picklable.
    """

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, column: pa.Array) -> pa.Array:
        """
        Decode a column without nulls. ValueError if a value does not match the schema, which a column of one value
        explains.
        """

    def salvage(self, value: bytes) -> pa.Array:
        """
        One row: what is left of a malformed value in the mode PERMISSIVE.
        """


@dataclass(frozen=True)
class ColumnDecoder:
    """
    Decodes a column whose values may be malformed. A part with a malformed value is halved until that is alone.
    """

    values: ValueDecoder
    mode: ParseMode

    @property
    def type(self) -> pa.DataType:
        return self.values.type

    @property
    def drops(self) -> bool:
        return self.mode is ParseMode.DROPMALFORMED

    def decode(self, columns: Columns, name: str) -> Columns:
        """
        The columns with one decoded, in which null stays null. In the mode DROPMALFORMED they have only the rows whose
        value matches the schema; in the mode FAILFAST a ValueError has the first that does not.
        """
        column = columns[name]
        malformed: list[int] = []
        decoded = columns | {name: where_there(column, lambda values: self._decode(values, 0, malformed))}
        if not malformed or not self.drops:
            return decoded
        keep: np.ndarray = np.ones(len(column), bool)
        keep[np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))[malformed]] = False
        return {other: values.filter(pa.array(keep)) for other, values in decoded.items()}

    def _decode(self, column: pa.Array, first: int, malformed: list[int]) -> pa.Array:
        try:
            return self.values.decode(column)
        except ValueError:
            if len(column) > 1:
                half = len(column) // 2
                parts = (column[:half], first), (column[half:], first + half)
                return pa.concat_arrays([self._decode(part, number, malformed) for part, number in parts])
            if self.mode is ParseMode.FAILFAST:
                raise
        malformed.append(first)
        return self.values.salvage(column[0].as_py())
