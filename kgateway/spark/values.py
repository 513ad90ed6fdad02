"""
What makes typed columns of keys and values. A decoder takes a whole column, so that it may work by column; one that
knows a record's type only by the id before it, as those of a schema registry do, groups the rows by that first.
"""

from typing import Protocol

import pyarrow as pa


class ValueDecoder(Protocol):
    """
    Decodes keys or values. It goes to the tasks with the query, so it has to be such that it can be pickled.
    """

    @property
    def type(self) -> pa.DataType:
        """
        What comes out.
        """

    def decode(self, column: pa.Array) -> pa.Array:
        """
        The column in that type; null stays null. A ValueError where a value is not what it should be.
        """
