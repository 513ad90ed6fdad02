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

    def doubtful(self, column: pa.Array) -> np.ndarray:
        """
        For each value of a column that cannot be decoded, whether it should be looked at alone. It is a guess.
        """

    def salvage(self, value: bytes) -> pa.Array:
        """
        One row: what is left of a malformed value in the mode PERMISSIVE.
        """


@dataclass(frozen=True)
class ColumnDecoder:
    """
    Decodes a column whose values may be malformed. A part that cannot be decoded is divided until malformed values are
    alone.
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

        def decode(values: pa.Array) -> pa.Array:
            return self._decode(values, np.arange(len(values)), malformed)

        decoded = columns | {name: where_there(column, decode)}
        if not malformed or not self.drops:
            return decoded
        keep: np.ndarray = np.ones(len(column), bool)
        keep[np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))[malformed]] = False
        return {other: values.filter(pa.array(keep)) for other, values in decoded.items()}

    def _decode(self, column: pa.Array, rows: np.ndarray, malformed: list[int]) -> pa.Array:
        try:
            return self.values.decode(column)
        except ValueError:
            if len(column) == 1:
                if self.mode is ParseMode.FAILFAST:
                    raise
                malformed.append(int(rows[0]))
                return self.values.salvage(column[0].as_py())
        groups = _groups(self.values.doubtful(column))
        parts = [self._decode(column.take(pa.array(group)), rows[group], malformed) for group in groups]
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(groups))))


def _groups(doubtful: np.ndarray) -> list[np.ndarray]:
    """
    Doubtful values one by one and all others together; if none is doubtful, two halves.
    """
    count = len(doubtful)
    if not doubtful.any():
        return [*np.split(np.arange(count), [count // 2])]
    alone = np.flatnonzero(doubtful)
    others = np.flatnonzero(~doubtful)
    return [*([others] if len(others) else []), *np.split(alone, len(alone))]
