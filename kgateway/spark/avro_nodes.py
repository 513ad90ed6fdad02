"""
Avro by column: each node of a schema is one step for all values, which moves a vector of positions on.

Nothing is made before all values are known to end where they should: what a step leaves behind is how its column will
be made. Positions that lead out of the data are IndexErrors until then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from kgateway.spark.nulls import spread
from kgateway.spark.spans import gathered
from kgateway.spark.varints import read_varints

Make = Callable[[], pa.Array]
Step = tuple[Make, np.ndarray]


@dataclass(frozen=True, slots=True)
class Source:
    """
    The values of a column, one behind the other.
    """

    data: np.ndarray
    buffer: pa.Buffer


class Node(Protocol):
    """
    A part of a schema.
    """

    @property
    def type(self) -> pa.DataType:
        """
        What its column is.
        """

    def step(self, source: Source, at: np.ndarray) -> Step:
        """
        How the column is made, and the positions behind it.
        """


@dataclass(frozen=True, slots=True)
class Whole:
    """
    Whole numbers, and what is written as one: dates and times, which count in units of so many microseconds.
    """

    type: pa.DataType
    bits: int = 64
    scale: int = 1

    def step(self, source: Source, at: np.ndarray) -> Step:
        numbers, after = read_varints(source.data, at, self.bits)
        plain = pa.int64() if self.bits == 64 else pa.int32()
        return lambda: pa.array(numbers * self.scale).cast(plain).cast(self.type), after


@dataclass(frozen=True, slots=True)
class Fixed:
    """
    Numbers of fixed size, and truth values.
    """

    type: pa.DataType
    letter: str

    def step(self, source: Source, at: np.ndarray) -> Step:
        size = np.dtype(self.letter).itemsize
        found = source.data[at[:, None] + np.arange(size)].view(self.letter)[:, 0]
        if self.letter == "?" and (found.view(np.uint8) > 1).any():
            raise IndexError("neither true nor false")
        return lambda: pa.array(found), at + size


@dataclass(frozen=True, slots=True)
class Sized:
    """
    Texts and bytes, behind their lengths.
    """

    type: pa.DataType

    def step(self, source: Source, at: np.ndarray) -> Step:
        sizes, starts = read_varints(source.data, at, bits=64)
        if (sizes < 0).any() or (sizes > len(source.data)).any():
            raise IndexError("a length that cannot be")
        return lambda: gathered(source.buffer, starts, sizes).cast(self.type), starts + sizes


@dataclass(frozen=True, slots=True)
class Nullable:
    """
    A union of null and something else.
    """

    inside: Node
    null_branch: int

    @property
    def type(self) -> pa.DataType:
        return self.inside.type

    def step(self, source: Source, at: np.ndarray) -> Step:
        branches, after = read_varints(source.data, at)
        if ((branches < 0) | (branches > 1)).any():
            raise IndexError("a branch that the union has not")
        is_there = branches != self.null_branch
        rows = np.flatnonzero(is_there)
        make, after[rows] = self.inside.step(source, after[rows])
        return lambda: spread(make(), is_there), after


@dataclass(frozen=True, slots=True)
class Group:
    """
    A record: its fields, one after the other.
    """

    names: tuple[str, ...]
    fields: tuple[Node, ...]

    @property
    def type(self) -> pa.DataType:
        return pa.struct([pa.field(name, field.type) for name, field in zip(self.names, self.fields, strict=True)])

    def step(self, source: Source, at: np.ndarray) -> Step:
        makes = list[Make]()
        for field in self.fields:
            make, at = field.step(source, at)
            makes.append(make)
        return lambda: pa.StructArray.from_arrays([make() for make in makes], fields=list(self.type)), at
