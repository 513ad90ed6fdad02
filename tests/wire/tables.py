"""
Small tables with each feature of the codec.
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import Records, f64, i8, i16, i32, i64, u16, varint, varlong
from kgateway.wire.uuids import Uuid

ID = Uuid(range(16))


class Pair(Message, versions="0-2", flexible="2+"):
    """
    Strings and lists in both length formats.
    """

    class Item(Struct):
        name: str
        numbers: list[i32]

    code: i16
    items: list[Item] | None


class Flat(Message, versions="0"):
    """
    Every type of fixed size.
    """

    a: i8
    b: i16
    c: i32
    d: i64
    e: u16
    f: f64
    g: bool
    h: Uuid


class Tagged(Message, versions="0", flexible="0+"):
    """
    Tags of several types, declared out of order.
    """

    class Inner(Struct):
        number: i32

    plain: i8
    second: str = v(tag=1)
    first: i32 = v(tag=0, default=-1)
    absent: Inner | None = v(tag=5)
    null: Inner | None = v(tag=6, nullable="0+")


class Nested(Message, versions="0", flexible="0+"):
    """
    A nullable struct and another one.
    """

    class Inner(Struct):
        number: i16

    one: Inner | None
    other: Inner


class Batches(Message, versions="0-1", flexible="1+"):
    before: i16
    records: Records | None
    after: i16


class Signed(Message, versions="0", zigzag=True):
    """
    The inside of a record, where all lengths are signed varints.
    """

    small: varint
    large: varlong
    key: bytes | None
    names: list[str]


class Numbers(Message, versions="0", flexible="0+"):
    numbers: list[i8]
