"""
A class body is a table, and its class a value with slots.
"""

import pytest

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import ListOf, StructOf, i16, i32
from kgateway.wire.uuids import ZERO, Uuid


class Sample(Message, key=7, versions="0-4", flexible="3+"):
    """
    A table with one field of each kind.
    """

    class Inner(Struct):
        number: i32

    code: i16
    name: str | None
    late: i32 = v("1+", default=-1)
    items: list[Inner] = v("2+")
    topic_id: Uuid = v("2+")
    partly: str | None = v(nullable="2+")
    inner: Inner | None = v("3+", tag=0)


class Outer(Message, versions="0"):
    """
    A table whose annotations are text, as in a compiled module.
    """

    class Inner(Struct):
        number: "i32"

    items: "list[Inner] | None" = v("0+")


def test_annotations_may_be_text() -> None:
    """
    They name what is in scope: types of the wire, and structs of the table.
    """
    [items] = Outer.__fields__
    assert items.type == ListOf(StructOf(Outer.Inner))
    assert items.nullable


def test_required_fields_must_be_given() -> None:
    """
    A field without `v(...)` has no default, even if it is nullable.
    """
    with pytest.raises(TypeError, match="name"):
        Sample(code=1)  # type: ignore[call-arg]


def test_unknown_fields_are_refused() -> None:
    """
    A misspelt field is an error on each instantiation.
    """
    for _ in range(2):
        with pytest.raises(TypeError, match="nmae"):
            Sample(code=1, name=None, nmae="x")  # type: ignore[call-arg]


def test_defaults_are_those_of_the_table_or_the_type() -> None:
    """
    An omitted field has the default of `v(...)`, else null if it is always nullable, else the empty value.
    """
    sample = Sample(code=1, name=None)
    assert (sample.late, sample.items, sample.topic_id, sample.partly, sample.inner) == (-1, [], ZERO, "", None)


def test_default_lists_are_not_shared() -> None:
    one, other = Sample(code=1, name=None), Sample(code=1, name=None)
    one.items.append(Sample.Inner(number=1))
    assert other.items == []


def test_values_compare_by_their_fields() -> None:
    """
    Only values of the same class with equal fields are equal.
    """
    assert Sample(code=1, name="a") == Sample(code=1, name="a")
    assert Sample(code=1, name="a") != Sample(code=1, name="b")
    assert Sample.Inner(number=1) != (1,)


def test_repr_shows_class_and_fields() -> None:
    assert repr(Sample.Inner(number=1)) == "Sample.Inner(number=1)"


def test_values_have_slots() -> None:
    """
    An unknown field cannot be set by mistake.
    """
    with pytest.raises(AttributeError):
        Sample(code=1, name=None).cod = 2  # type: ignore[attr-defined]


def test_a_message_knows_its_key_and_versions() -> None:
    """
    They stand in the class line only.
    """
    spec = Sample.__spec__
    assert (spec.key, spec.versions, 2 in spec.flexible, 3 in spec.flexible) == (7, range(5), False, True)


def test_types_without_a_wire_format_are_refused() -> None:
    """
    The error is raised with the declaration.
    """
    with pytest.raises(TypeError, match="no form on the wire"):

        class Wrong(Struct):
            number: int


def test_a_struct_absent_in_some_versions_must_be_nullable() -> None:
    """
    A struct has no empty value.
    """
    with pytest.raises(TypeError, match="must admit None"):

        class Wrong(Struct):
            inner: Sample.Inner = v("1+")
